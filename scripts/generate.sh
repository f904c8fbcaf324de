#!/usr/bin/env bash
# Writes every generated file anew. Needs protoc (Debian: protobuf-compiler); the
# Go generators are the ones that go.mod names. The same sources give the same
# bytes with every protoc: the one line that names its version is taken out.
set -euo pipefail
cd "$(dirname "$0")/.."

plugin() { go tool -n "$1"; }

protoc -I sdk \
  --plugin=protoc-gen-go="$(plugin protoc-gen-go)" \
  --plugin=protoc-gen-connect-go="$(plugin protoc-gen-connect-go)" \
  --plugin=protoc-gen-go-vtproto="$(plugin protoc-gen-go-vtproto)" \
  --go_out=sdk --go_opt=paths=source_relative \
  --connect-go_out=sdk --connect-go_opt=paths=source_relative \
  --go-vtproto_out=sdk --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal+unmarshal_unsafe+size \
  boardd/v1/boardd.proto boardd/v1/admin.proto

if [ -f sdk/plugin/driver.proto ]; then
  protoc -I sdk/plugin \
    --plugin=protoc-gen-go="$(plugin protoc-gen-go)" \
    --plugin=protoc-gen-go-grpc="$(plugin protoc-gen-go-grpc)" \
    --plugin=protoc-gen-go-vtproto="$(plugin protoc-gen-go-vtproto)" \
    --go_out=sdk/plugin/internal/pb --go_opt=paths=source_relative \
    --go-grpc_out=sdk/plugin/internal/pb --go-grpc_opt=paths=source_relative \
    --go-vtproto_out=sdk/plugin/internal/pb --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal+size \
    driver.proto
fi

find sdk -name '*.pb.go' -exec sed -i -E '/^\/\/ +(- )?protoc +v[0-9]/d; /^\/\/ 	protoc /d' {} +
