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
  boardd/v1/boardd.proto boardd/v1/admin.proto

# What is sent for each job has codecs without reflection; all else has the standard
# runtime's. A request to post or claim is read with copies, since the board keeps
# parts of it for long; what lives as long as its call is read without.
protoc -I sdk \
  --plugin=protoc-gen-go-vtproto="$(plugin protoc-gen-go-vtproto)" \
  --go-vtproto_out=sdk --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal+unmarshal_unsafe+size \
  boardd/v1/boardd.proto
go run ./internal/prune \
  -safe PostJobsRequest,ClaimJobsRequest,WorkRequest,GetJobsRequest \
  -shared ExtendClaimsRequest,ConsumeJobsRequest,AbandonJobsRequest,TrashJobsRequest \
  -shared PostJobsResponse,ClaimJobsResponse,WorkResponse,ExtendClaimsResponse,ConsumeJobsResponse,AbandonJobsResponse,TrashJobsResponse \
  -shared GetJobsResponse,ListJobsResponse,ListEventsResponse,Event \
  sdk/boardd/v1/boardd.pb.go sdk/boardd/v1/boardd_vtproto.pb.go
# The entries of maps are read without a look at how a field is encoded, and a number
# would be taken for a text's length. All of these maps are of texts.
sed -i -E 's/^(\t+(\} else )?if fieldNum == [12]) \{$/\1 \&\& wire\&7 == 2 {/' sdk/boardd/v1/boardd_vtproto.pb.go

if [ -f sdk/plugin/driver.proto ]; then
  protoc -I sdk/plugin \
    --plugin=protoc-gen-go="$(plugin protoc-gen-go)" \
    --plugin=protoc-gen-go-grpc="$(plugin protoc-gen-go-grpc)" \
    --plugin=protoc-gen-go-vtproto="$(plugin protoc-gen-go-vtproto)" \
    --go_out=sdk/plugin/internal/pb --go_opt=paths=source_relative \
    --go-grpc_out=sdk/plugin/internal/pb --go-grpc_opt=paths=source_relative \
    --go-vtproto_out=sdk/plugin/internal/pb --go-vtproto_opt=paths=source_relative,features=marshal+unmarshal+size \
    driver.proto
  # Results are read by sdk/plugin/internal/wire in one pass. Statuses, findings and documents quote
  # what lies in a store, which may be no UTF-8, and the standard runtime refuses that.
  go run ./internal/prune -safe Batch,ReadRequest,Records,ScanRequest,Page,Changes,BoardSpec,BoardStatus,Findings,Documents,DocumentChanges,Inboxes -written BatchResult \
    sdk/plugin/internal/pb/driver.pb.go sdk/plugin/internal/pb/driver_vtproto.pb.go
fi

find sdk -name '*.pb.go' -exec sed -i -E '/^\/\/ +(- )?protoc +v[0-9]/d; /^\/\/ 	protoc /d' {} +

# The templates of drivers have the messages, too, and the examples as they are.
go test -count=1 -run 'TestTemplates|TestMessages' ./cmd/boardd/scaffold -update
