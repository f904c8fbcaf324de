#!/bin/sh
# Makes the secrets of compose.yaml, each in a file of the folder secrets, which nobody but
# its owner can look into. The files can be read by all, since each service reads those
# that are mounted for it as a user of its own.
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
  echo "secrets.sh: the folder secrets is there already; remove it to have new ones made" >&2
  exit 1
fi
umask 022
rm -rf secrets.new
mkdir -m 700 secrets.new
for name in boardd-root boardd-metrics redis-password grafana-admin; do
  od -An -v -N24 -tx1 /dev/urandom | tr -d ' \n' > "secrets.new/$name"
done

# The commands are those of docs/redis.md. The keys are all: this Redis is for boards alone.
digest=$(sha256sum secrets.new/redis-password | cut -d ' ' -f 1)
cat > secrets.new/redis-users <<ACL
user default on nopass resetkeys resetchannels -@all +ping
user boardd on #$digest ~* resetchannels &* -@all +ping +hello +info +role +time +config|get +multi +exec +eval +evalsha +publish +subscribe +unsubscribe +psubscribe +punsubscribe +scan +dbsize +del +exists +unlink +get +mget +set +incrby +persist +pexpire +pttl +hdel +hexists +hget +hgetall +hincrby +hlen +hmget +hrandfield +hscan +hset +hstrlen +hvals +lindex +llen +lrange +ltrim +rpush +sadd +smembers +xadd +xrange +xrevrange +zadd +zcard +zpopmin +zrange +zrangebylex +zrangebyscore +zrem +zrevrangebyscore
ACL
mv secrets.new secrets
