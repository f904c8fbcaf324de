package imports_test

// module is the path that all packages of this repository begin with.
const module = "github.com/boardd/boardd"

// line says what one package may import of this module. Imports run one way:
// from the network to the host, from the host to its boards, from the boards to
// the contracts, and from everything to the nouns.
type line struct {
	may   []string // below the module; NAME/... stands for everything below NAME
	tests []string // what only its tests may import besides
	why   string   // what it is, and with that, why it may not import more
}

// inTests is what every package's tests may import.
var inTests = []string{"internal/testneed", "internal/testserver", "sdk/driver/memdriver", "sdk/driver/drivertest/..."}

// packages is the law. A package that has no line fails the test until somebody
// has thought about what it may know.
var packages = map[string]line{
	"sdk/job":                       {may: []string{"sdk/shorten"}, why: "the nouns: whoever knows anything knows these, so they know nobody"},
	"sdk/nearest":                   {why: "one function on strings"},
	"sdk/sleep":                     {why: "one function on time"},
	"sdk/durable":                   {may: []string{"sdk/failpoint"}, why: "files and their folders; what they hold, it does not know"},
	"sdk/failpoint":                 {why: "names of places in the code; what happens there, it does not know"},
	"sdk/diskspace":                 {why: "one call of the kernel"},
	"sdk/tempfolder":                {why: "folders and their locks; what they hold, it does not know"},
	"sdk/shorten":                   {why: "how text is shortened"},
	"sdk/driver":                    {may: []string{"sdk/job", "sdk/nearest"}, why: "a contract: a store is described in nouns, not in terms of who uses it"},
	"sdk/driver/document":           {may: []string{"sdk/driver", "sdk/job"}, why: "what drivers share of documents: no store, no context"},
	"sdk/driver/transition":         {may: []string{"sdk/driver", "sdk/job"}, why: "the contract as a function: no store, no clock, no context"},
	"sdk/driver/poll":               {may: []string{"sdk/driver", "sdk/driver/document", "sdk/job"}, why: "streams out of questions, whatever the store"},
	"sdk/driver/memdriver":          {may: []string{"sdk/driver", "sdk/driver/document", "sdk/driver/poll", "sdk/driver/transition", "sdk/job"}, why: "the reference: whatever it needs, every driver would need"},
	"sdk/driver/drivertest":         {may: []string{"sdk/driver", "sdk/driver/transition", "sdk/job", "sdk/driver/memdriver"}, why: "judges a driver by the contract alone"},
	"sdk/driver/drivertest/seeded":  {may: []string{"sdk/driver", "sdk/job", "sdk/driver/memdriver"}, why: "drivers with a known fault each, that the suite has to find"},
	"sdk/driver/logbook":            {may: []string{"sdk/shorten", "sdk/job", "sdk/sleep"}, why: "TaskFlow's books in any tree; what reaches the tree, it does not know"},
	"sdk/plugin":                    {may: []string{"sdk/shorten", "sdk/sleep", "sdk/tempfolder", "sdk/driver", "sdk/job", "sdk/plugin/internal/...", "sdk/failpoint"}, why: "carries the driver contract, and knows no driver"},
	"sdk/plugin/internal/pb":        {why: "generated"},
	"sdk/plugin/internal/wire":      {may: []string{"sdk/driver", "sdk/job", "sdk/plugin/internal/pb"}, why: "between the contract's types and the generated ones"},
	"sdk/policy":                    {may: []string{"sdk/job", "sdk/nearest", "sdk/policy/abi"}, tests: []string{"sdk/policy/..."}, why: "a contract: a rule sees jobs, not boards and stores"},
	"sdk/policy/abi":                {why: "numbers: a module pays for each package that it imports"},
	"sdk/policy/guest":              {may: []string{"sdk/policy/abi"}, why: "becomes part of every policy in Go, so it is small"},
	"sdk/policy/block":              {may: []string{"sdk/job", "sdk/policy", "sdk/policy/abi"}, why: "the host's side of a block; it does not know who runs it"},
	"sdk/policy/native":             {may: []string{"sdk/job", "sdk/policy", "sdk/policy/abi", "sdk/policy/block", "sdk/policy/guest"}, why: "joins both sides of a block in one process"},
	"sdk":                           {why: "sources, as files"},
	"sdk/policy/build":              {may: []string{"sdk", "sdk/job", "sdk/policy"}, why: "runs compilers; it runs no policy"},
	"sdk/policy/policytest":         {may: []string{"sdk/job", "sdk/policy"}, why: "judges a policy by the contract alone"},
	"sdk/boardd/v1":                 {why: "generated"},
	"sdk/boardd/v1/boarddv1connect": {may: []string{"sdk/boardd/v1"}, why: "generated"},
	"sdk/wirejson":                  {may: []string{"sdk/shorten", "sdk/boardd/v1", "sdk/job", "sdk/nearest"}, why: "the JSON form of the public messages, for both sides of the wire"},
	"sdk/client":                    {may: []string{"sdk/sleep", "sdk/boardd/...", "sdk/job", "sdk/wirejson"}, why: "a client shares the public messages with the server and nothing else"},
	"sdk/client/clienttest":         {may: []string{"sdk/boardd/...", "sdk/client"}, why: "judges a worker by what a server sees of it; the server is a process"},
	"host/ranking":                  {may: []string{"sdk/job", "sdk/policy"}, why: "the order as arithmetic: it keeps no jobs and asks no policy"},
	"host/index":                    {may: []string{"host/ranking", "sdk/driver", "sdk/job", "sdk/policy"}, why: "orders jobs; it calls no store and no policy of its own accord"},
	"host/board":                    {may: []string{"host/board/filter", "host/board/jsontext", "host/board/record", "host/board/timetable", "host/ranking", "sdk/shorten", "sdk/sleep", "sdk/driver", "sdk/job", "sdk/nearest", "sdk/policy", "host/index", "sdk/failpoint"}, tests: []string{"internal/faults/check", "internal/faults/history", "internal/simulation"}, why: "one board: it has never heard of tenants, tokens, configuration or other boards"},
	"host/board/filter":             {may: []string{"sdk/job", "sdk/nearest", "sdk/shorten", "host/board/jsontext"}, why: "text to conditions, and a job to yes or no"},
	"host/board/jsontext":           {may: []string{"sdk/job", "sdk/shorten"}, why: "looks at JSON text; it decodes nothing"},
	"host/board/timetable":          {why: "a cron expression to times: it knows no board"},
	"host/board/record":             {may: []string{"sdk/job", "sdk/shorten"}, why: "bytes to structs and back; it knows no board and no store"},
	"host/board/boardtest":          {may: []string{"sdk/driver", "sdk/job", "sdk/policy", "host/board"}, tests: []string{"plugins/embedded", "plugins/postgres/store", "plugins/redis/store", "plugins/zookeeper/store"}, why: "judges what a board does on one more store, through what everybody sees of it"},
	"host/tenant":                   {may: []string{"sdk/shorten", "sdk/job", "sdk/nearest"}, tests: []string{"sdk/boardd/v1"}, why: "who may call what; it reaches nothing that could be called"},
	"host/webhook":                  {may: []string{"host/board", "sdk/job", "sdk/shorten", "sdk/sleep"}, tests: []string{"sdk/driver", "sdk/driver/memdriver"}, why: "reaches a store only through a board, and knows of other boards only that there are deliveries on one"},
	"host/config":                   {may: []string{"host/board", "host/board/timetable", "host/tenant", "host/wasm", "host/webhook", "host/wasm/module", "policies", "sdk/driver", "sdk/job", "sdk/nearest", "sdk/policy", "host/pin"}, why: "text to structs; it starts nothing, and only reads what the modules that it names declare, and asks what a schedule may be"},
	"host/identity":                 {may: []string{"sdk/job", "sdk/sleep", "host/config", "host/tenant"}, tests: []string{"host/identity/identitytest"}, why: "says who somebody is, by what others have signed; it has never heard of boards"},
	"host/identity/identitytest":    {may: []string{"host/config", "host/tenant"}, why: "for tests: an identity provider"},
	"host/trace":                    {may: []string{"sdk/driver", "sdk/job", "sdk/policy", "host/config"}, why: "stands around a driver and a policy, and knows nobody who asks them"},
	"host/pin":                      {why: "bytes to a digest, and who signed them; what they are, it does not know"},
	"host/filelock":                 {why: "one call of the kernel"},
	"host/memory":                   {may: []string{"sdk/durable", "host/filelock", "sdk/failpoint"}, why: "keys and bytes in a file; whose they are and what they mean, it does not know"},
	"host/acknowledged":             {may: []string{"host/memory", "sdk/driver", "sdk/job", "sdk/failpoint"}, why: "stands around a driver and remembers; what a board is, it does not know"},
	"host/audit":                    {may: []string{"sdk/shorten", "sdk/job", "sdk/durable", "host/filelock", "sdk/failpoint"}, why: "a file that is only appended to; what a call is, it does not know"},
	"host/auditor":                  {may: []string{"host/audit", "host/catalog", "host/config", "host/tenant", "sdk/job", "sdk/sleep"}, why: "keeps one log; who may read it is decided above"},
	"host/backup":                   {may: []string{"sdk/driver", "sdk/durable", "sdk/job", "sdk/sleep"}, why: "files with their checksums; it knows no store, and what they say neither"},
	"host/binding":                  {may: []string{"host/board", "host/catalog", "host/config", "host/directory", "host/quota", "host/trace", "host/wasm", "policies", "sdk/job", "sdk/policy", "sdk/shorten", "sdk/sleep", "sdk/tempfolder"}, tests: []string{"sdk/driver"}, why: "rules to policies that can be asked; who may change them is decided above"},
	"host/catalog":                  {may: []string{"sdk/sleep", "sdk/driver", "sdk/job", "host/config", "sdk/durable", "host/tenant", "sdk/failpoint"}, why: "typed records in a driver's documents; who may change what is decided above"},
	"host/fleet":                    {may: []string{"sdk/driver", "sdk/job"}, why: "who lives and who serves what, as arithmetic over words in documents; it has never heard of a board that is open"},
	"host/directory":                {may: []string{"host/catalog", "host/config", "host/tenant"}, tests: []string{"sdk/job"}, why: "a configuration and a view of the catalog to what there is; it asks nobody"},
	"host/quota":                    {may: []string{"host/config", "sdk/driver", "sdk/job", "sdk/sleep"}, why: "stands around a driver and counts; who calls, it does not know"},
	"host/recording":                {may: []string{"sdk/job", "sdk/policy", "host/board", "sdk/failpoint"}, tests: []string{"host/replay"}, why: "files of what happened on a board; what is made of them, it does not know"},
	"host/replay":                   {may: []string{"host/ranking", "sdk/job", "sdk/policy", "host/board", "host/recording"}, tests: []string{"policies", "sdk/driver", "sdk/policy/..."}, why: "a recording and policies to a report: no store, no clock"},
	"host/supervisor":               {may: []string{"sdk/sleep", "sdk/driver", "sdk/job", "sdk/plugin", "sdk/failpoint"}, tests: []string{"plugins/embedded"}, why: "is itself a driver, so nobody above knows of processes"},
	"host":                          {may: []string{"host/acknowledged", "host/audit", "host/auditor", "host/backup", "host/binding", "host/board", "host/catalog", "host/config", "host/directory", "host/fleet", "host/identity", "host/memory", "host/quota", "host/recording", "host/supervisor", "host/tenant", "host/trace", "host/wasm", "host/webhook", "sdk/diskspace", "sdk/driver", "sdk/driver/logbook", "sdk/durable", "sdk/job", "sdk/nearest", "sdk/plugin", "sdk/shorten", "sdk/sleep"}, tests: []string{"host/replay", "plugins/embedded", "policies", "sdk/policy", "host/admin", "sdk/policy/build"}, why: "the whole server without a network: nothing here speaks HTTP"},
	"host/doctor":                   {may: []string{"host", "host/acknowledged", "host/audit", "host/auditor", "host/board", "host/catalog", "host/config", "host/directory", "host/memory", "sdk/driver", "sdk/job", "sdk/plugin"}, tests: []string{"sdk/driver/memdriver"}, why: "looks at a deployment from outside, with the parts that a host is made of"},
	"host/admin":                    {may: []string{"host", "host/audit", "host/auditor", "host/binding", "host/board", "host/catalog", "host/config", "host/directory", "host/fleet", "host/quota", "host/recording", "host/replay", "host/tenant", "host/wasm", "host/wasm/module", "policies", "sdk/job", "sdk/nearest", "sdk/policy"}, why: "what administrators do, on top of a host; it reaches a store only through it"},
	"host/api":                      {may: []string{"host", "host/admin", "host/audit", "host/auditor", "host/board", "host/board/filter", "host/catalog", "host/config", "host/directory", "host/fleet", "host/replay", "host/tenant", "host/trace", "sdk/boardd/...", "sdk/job", "sdk/nearest", "sdk/shorten", "sdk/sleep", "sdk/wirejson"}, tests: []string{"host/identity/identitytest", "host/supervisor", "plugins/embedded", "sdk/client", "sdk/driver"}, why: "an adapter: it reaches a board through a session and no store at all"},
	"host/wasm":                     {may: []string{"sdk/job", "sdk/policy", "sdk/policy/abi", "sdk/policy/block", "host/wasm/module", "host/wasm/meter"}, tests: []string{"sdk/policy/build"}, why: "makes a policy of a module; it has never heard of boards"},
	"host/wasm/module":              {may: []string{"sdk/job", "sdk/policy/abi"}, why: "reads what strangers send; it runs nothing"},
	"host/wasm/meter":               {may: []string{"host/wasm/module"}, why: "bytes to bytes"},
	"host/web":                      {may: []string{"host", "host/admin", "host/auditor", "host/board", "host/directory", "host/tenant", "sdk/job", "sdk/sleep"}, tests: []string{"host/config", "host/identity/identitytest", "plugins/embedded", "sdk/boardd/v1", "sdk/client", "sdk/driver", "sdk/policy/build"}, why: "pages for people: it reaches a board through a session, as the API does"},
	"policies":                      {may: []string{"sdk/job", "sdk/nearest", "sdk/policy/...", "policies/aging", "policies/deadline", "policies/fairshare", "policies/labels", "policies/limit", "policies/rate", "policies/retryfirst", "policies/windows"}, tests: []string{"host/wasm"}, why: "lists the policies that boardd brings along"},
	"policies/aging/...":            {may: []string{"sdk/policy/guest", "policies/aging"}, why: "what an author would write: only what becomes part of a module"},
	"policies/deadline/...":         {may: []string{"sdk/policy/guest", "policies/deadline"}, why: "what an author would write: only what becomes part of a module"},
	"policies/fairshare/...":        {may: []string{"sdk/policy/guest", "policies/fairshare"}, why: "what an author would write: only what becomes part of a module"},
	"policies/labels/...":           {may: []string{"sdk/policy/guest", "policies/labels"}, why: "what an author would write: only what becomes part of a module"},
	"policies/limit/...":            {may: []string{"sdk/policy/guest", "policies/limit"}, why: "what an author would write: only what becomes part of a module"},
	"policies/rate/...":             {may: []string{"sdk/policy/guest", "policies/rate"}, why: "what an author would write: only what becomes part of a module"},
	"policies/retryfirst/...":       {may: []string{"sdk/policy/guest", "policies/retryfirst"}, why: "what an author would write: only what becomes part of a module"},
	"policies/windows/...":          {may: []string{"sdk/policy/guest", "policies/windows"}, why: "what an author would write: only what becomes part of a module"},
	"policies/templates/...":        {may: []string{"sdk/policy/guest"}, tests: []string{"sdk/job", "sdk/policy/..."}, why: "what an author would write: only what becomes part of a module"},
	"plugins/embedded":              {may: []string{"plugins/embedded/wal", "sdk/diskspace", "sdk/durable", "sdk/driver", "sdk/driver/document", "sdk/driver/transition", "sdk/job", "sdk/plugin", "sdk/failpoint"}, tests: []string{"internal/simulation", "internal/simulation/stores"}, why: "a driver like anybody's: it may use what a stranger's may"},
	"plugins/embedded/wal":          {may: []string{"sdk/durable", "sdk/failpoint"}, why: "bytes to a disk and back; what a record says, it does not know"},
	"plugins/taskflow":              {may: []string{"sdk/shorten", "sdk/job"}, why: "TaskFlow's bytes, for every store that shares its boards; it reaches no store"},
	"plugins/postgres/...":          {may: []string{"sdk/driver", "sdk/driver/document", "sdk/driver/poll", "sdk/driver/transition", "sdk/job", "sdk/plugin", "sdk/sleep", "plugins/postgres/..."}, why: "a driver like anybody's"},
	"plugins/redis/...":             {may: []string{"sdk/shorten", "sdk/driver", "sdk/driver/document", "sdk/driver/poll", "sdk/driver/transition", "sdk/job", "sdk/plugin", "sdk/sleep", "plugins/taskflow", "plugins/redis/...", "sdk/failpoint"}, why: "a driver like anybody's"},
	"plugins/zookeeper/...":         {may: []string{"sdk/driver", "sdk/driver/document", "sdk/driver/transition", "sdk/driver/logbook", "sdk/job", "sdk/plugin", "sdk/sleep", "plugins/taskflow", "plugins/zookeeper/...", "sdk/failpoint"}, why: "a driver like anybody's"},
	"cmd/boardd":                    {may: []string{"host", "host/api", "host/audit", "host/backup", "host/board", "host/config", "host/doctor", "host/recording", "host/replay", "host/supervisor", "host/tenant", "host/wasm", "host/wasm/module", "host/web", "plugins/embedded", "sdk/...", "host/admin", "host/pin", "cmd/boardd/scaffold"}, tests: []string{"host/identity/identitytest"}, why: "puts the parts together; everything else is unaware of it"},
	"cmd/boardd/scaffold":           {may: []string{"policies/templates", "sdk", "sdk/policy", "sdk/policy/build"}, why: "sources to folders; it builds and runs none of them"},
	"bench/...":                     {may: []string{"internal/testneed", "internal/testserver", "sdk/..."}, tests: []string{"plugins/embedded"}, why: "measures from outside, and the built-in store by itself"},
	"docs":                          {tests: []string{"host", "host/admin", "host/auditor", "host/api", "host/audit", "host/board", "host/board/filter", "host/catalog", "host/config", "host/doctor", "host/identity", "host/recording", "host/replay", "host/tenant", "host/wasm/...", "host/webhook", "plugins/embedded", "plugins/taskflow", "sdk/boardd/...", "sdk/driver", "sdk/job", "sdk/policy/...", "sdk/wirejson"}, why: "holds the pages against the code, so its tests look everywhere"},
	"clients/python":                {why: "runs the Python client's own tests"},
	"clients/typescript":            {why: "runs the TypeScript client's own tests"},
	"internal/failpoints":           {tests: []string{"host/audit", "host/recording", "sdk/..."}, why: "parses sources; its tests crash the real program at each point"},
	"internal/faults":               {may: []string{"internal/faults/...", "internal/testserver", "sdk/client", "sdk/job"}, tests: []string{"internal/testneed"}, why: "for tests: runs the real program, and looks at it from outside"},
	"internal/faults/check":         {may: []string{"internal/faults/history", "sdk/job"}, why: "a history to what is wrong with it: it runs nothing and has never heard of a server"},
	"internal/faults/history":       {may: []string{"sdk/job"}, why: "for tests: what was asked and what was answered"},
	"internal/faults/nemesis":       {may: []string{"internal/faults/history", "internal/testserver", "sdk/sleep"}, why: "for tests: breaks processes, connections and stores"},
	"internal/faults/seeded":        {may: []string{"host", "host/api", "host/config", "host/tenant", "internal/faults/history", "internal/faults/teams", "internal/faults/workload", "sdk/boardd/v1", "sdk/client", "sdk/driver", "sdk/driver/drivertest/seeded", "sdk/driver/memdriver", "sdk/job", "sdk/sleep"}, tests: []string{"internal/faults/check", "internal/testserver"}, why: "for tests: servers, drivers and clients that are wrong"},
	"internal/faults/teams":         {may: []string{"internal/testneed", "internal/testserver", "sdk/policy/build"}, why: "for tests: a policy of which a checker can say what it decides"},
	"internal/faults/workload":      {may: []string{"internal/faults/check", "internal/faults/history", "sdk/boardd/v1", "sdk/client", "sdk/job", "sdk/sleep"}, why: "for tests: clients like anybody's"},
	"internal/imports":              {why: "parses sources"},
	"internal/prune":                {why: "cuts generated code, and knows none of it"},
	"internal/release":              {tests: []string{"internal/testneed", "internal/testserver", "sdk/client"}, why: "makes a release as the script does, and looks at it from outside"},
	"internal/release/image":        {why: "files to an image: it knows where they lie, and nothing of what they do"},
	"internal/simulation":           {why: "runs programs on worlds, and knows none of them"},
	"internal/simulation/orders":    {may: []string{"host/index", "internal/simulation", "sdk/driver", "sdk/job", "sdk/policy"}, why: "for tests: feeds indexes, with no board around them"},
	"internal/simulation/stores":    {may: []string{"internal/simulation", "sdk/driver", "sdk/driver/memdriver", "sdk/driver/transition", "sdk/job"}, why: "for tests: judges by the contract of drivers, in no process but its own"},
	"internal/soak":                 {tests: []string{"sdk/..."}, why: "numbers and what they may be; its tests ask a real server"},
	"internal/testneed":             {why: "for tests"},
	"internal/testserver":           {may: []string{"internal/testneed", "sdk/client"}, why: "for tests: starts the real program"},
	"examples/...":                  {may: []string{"sdk/..."}, why: "what a user would write: only what users may import"},
}

// owner says which packages may import an outside module. One owner each, as far
// as the module's types do not cross: to replace it is then to change one
// package.
type owner struct {
	packages []string
	tests    bool // the tests of every package may, too
	why      string
}

// outside is every module that is not ours, by the path its packages begin with.
// Each has its paragraph in RATIONALE.md.
var outside = map[string]owner{
	"connectrpc.com/connect":                 {packages: []string{"bench/...", "sdk/boardd/...", "sdk/wirejson", "sdk/client", "host/api", "internal/faults/seeded"}, why: "the public protocol"},
	"connectrpc.com/grpchealth":              {packages: []string{"host/api"}, why: "the public protocol"},
	"connectrpc.com/grpcreflect":             {packages: []string{"host/api"}, why: "the public protocol"},
	"github.com/robfig/cron/v3":              {packages: []string{"host/board/timetable"}, why: "cron expressions"},
	"github.com/agext/levenshtein":           {packages: []string{"sdk/nearest"}, why: "suggestions"},
	"github.com/google/go-containerregistry": {packages: []string{"internal/release/image"}, why: "the formats of container images"},
	"golang.org/x/crypto/x509roots/fallback": {packages: []string{"internal/release/image"}, why: "the roots that the image trusts"},
	"github.com/go-jose/go-jose/v4":          {packages: []string{"host/identity/..."}, tests: true, why: "signed tokens of identity providers"},
	"github.com/go-zookeeper/zk":             {packages: []string{"plugins/zookeeper/..."}, why: "ZooKeeper's protocol"},
	"github.com/jackc/pgx/v5":                {packages: []string{"plugins/postgres/...", "examples/sql-post"}, why: "PostgreSQL's protocol"},
	"github.com/redis/go-redis/v9":           {packages: []string{"plugins/redis/..."}, why: "Redis's protocol"},
	"github.com/tetratelabs/wazero":          {packages: []string{"host/wasm/..."}, why: "runs WebAssembly"},
	"github.com/vmihailenco/msgpack/v5":      {packages: []string{"plugins/taskflow"}, why: "the encoding of TaskFlow's postings"},
	"github.com/hashicorp/go-hclog":          {packages: []string{"sdk/plugin"}, why: "go-plugin logs through it; everything else through log/slog"},
	"github.com/hashicorp/go-plugin":         {packages: []string{"sdk/plugin"}, why: "the process boundary of drivers"},
	"github.com/hashicorp/hcl/v2":            {packages: []string{"host/config"}, why: "the configuration's language"},
	"github.com/planetscale/vtprotobuf":      {packages: []string{"sdk/plugin", "sdk/plugin/internal/...", "sdk/boardd/v1"}, why: "generated code of the two wire formats"},
	"github.com/prometheus/client_golang":    {packages: []string{"host/api"}, why: "metrics"},
	"github.com/spf13/cobra":                 {packages: []string{"cmd/boardd"}, why: "the command line"},
	"github.com/spf13/pflag":                 {packages: []string{"cmd/boardd"}, why: "the flags of cobra"},
	"github.com/tidwall/btree":               {packages: []string{"host/catalog", "host/index", "host/replay", "plugins/embedded"}, why: "the claim order; records of which a copy costs nothing; what is over the file of the embedded store"},
	"github.com/zclconf/go-cty":              {packages: []string{"host/config"}, why: "the values of HCL"},
	"go.etcd.io/bbolt":                       {packages: []string{"plugins/embedded"}, why: "the embedded store"},
	"go.opentelemetry.io/otel":               {packages: []string{"host/trace"}, why: "traces"},
	"go.opentelemetry.io/proto/otlp":         {tests: true, why: "what a receiver of traces gets"},
	"golang.org/x/sys":                       {packages: []string{"plugins/embedded", "plugins/embedded/wal", "host/supervisor", "host/wasm", "sdk/plugin"}, why: "what the kernel offers and the standard library does not"},
	"golang.org/x/term":                      {packages: []string{"cmd/boardd"}, why: "whether a person reads the output, and keys as they are pressed"},
	"google.golang.org/grpc":                 {packages: []string{"sdk/plugin", "sdk/plugin/internal/..."}, why: "the process boundary of drivers"},
	"google.golang.org/protobuf":             {packages: []string{"sdk/plugin", "sdk/plugin/internal/...", "sdk/boardd/...", "sdk/wirejson", "sdk/client/...", "host/api", "cmd/boardd", "internal/faults/..."}, tests: true, why: "the messages of both protocols"},
	"github.com/anishathalye/porcupine":      {packages: []string{"internal/faults/check", "sdk/driver/drivertest"}, tests: true, why: "checks histories for linearizability"},
	"github.com/chromedp/chromedp":           {tests: true, why: "a real browser for the tests of the pages"},
	"github.com/chromedp/cdproto":            {tests: true, why: "the browser's protocol"},
	"github.com/google/go-cmp":               {tests: true, why: "shows how two values differ"},
	"github.com/rogpeppe/go-internal":        {tests: true, why: "tests of the command line as scripts"},
}
