package module

import (
	"strings"

	"github.com/boardd/boardd/sdk/policy/abi"
)

// allowed are the functions that a module may import.
var allowed = map[string]FuncType{
	abi.ModuleHost + "." + abi.ImportLog: signature("iii:"),
}

// signature reads a short form of a type: i and l for 32 and 64 bits.
func signature(text string) (t FuncType) {
	params, results, _ := strings.Cut(text, ":")
	kinds := map[rune]Type{'i': I32, 'l': I64}
	for _, c := range params {
		t.Params = append(t.Params, kinds[c])
	}
	for _, c := range results {
		t.Results = append(t.Results, kinds[c])
	}
	return t
}

// WASI are the functions of WASI preview 1 that Go and its library import, by
// their types. The engine has a stub for each.
var WASI = map[string]FuncType{
	"args_get":                signature("ii:i"),
	"args_sizes_get":          signature("ii:i"),
	"clock_res_get":           signature("ii:i"),
	"clock_time_get":          signature("ili:i"),
	"environ_get":             signature("ii:i"),
	"environ_sizes_get":       signature("ii:i"),
	"fd_advise":               signature("illi:i"),
	"fd_allocate":             signature("ill:i"),
	"fd_close":                signature("i:i"),
	"fd_datasync":             signature("i:i"),
	"fd_fdstat_get":           signature("ii:i"),
	"fd_fdstat_set_flags":     signature("ii:i"),
	"fd_fdstat_set_rights":    signature("ill:i"),
	"fd_filestat_get":         signature("ii:i"),
	"fd_filestat_set_size":    signature("il:i"),
	"fd_filestat_set_times":   signature("illi:i"),
	"fd_pread":                signature("iiili:i"),
	"fd_prestat_dir_name":     signature("iii:i"),
	"fd_prestat_get":          signature("ii:i"),
	"fd_pwrite":               signature("iiili:i"),
	"fd_read":                 signature("iiii:i"),
	"fd_readdir":              signature("iiili:i"),
	"fd_renumber":             signature("ii:i"),
	"fd_seek":                 signature("ilii:i"),
	"fd_sync":                 signature("i:i"),
	"fd_tell":                 signature("ii:i"),
	"fd_write":                signature("iiii:i"),
	"path_create_directory":   signature("iii:i"),
	"path_filestat_get":       signature("iiiii:i"),
	"path_filestat_set_times": signature("iiiilli:i"),
	"path_link":               signature("iiiiiii:i"),
	"path_open":               signature("iiiiillii:i"),
	"path_readlink":           signature("iiiiii:i"),
	"path_remove_directory":   signature("iii:i"),
	"path_rename":             signature("iiiiii:i"),
	"path_symlink":            signature("iiiii:i"),
	"path_unlink_file":        signature("iii:i"),
	"poll_oneoff":             signature("iiii:i"),
	"proc_exit":               signature("i:"),
	"random_get":              signature("ii:i"),
	"sched_yield":             signature(":i"),
	"sock_accept":             signature("iii:i"),
	"sock_recv":               signature("iiiiii:i"),
	"sock_send":               signature("iiiii:i"),
	"sock_shutdown":           signature("ii:i"),
}

func init() { //nolint:gochecknoinits // two tables into one
	for name, t := range WASI {
		allowed[abi.ModuleWASI+"."+name] = t
	}
}

// mendImport says how an import that compilers add is avoided.
func mendImport(i Import) string {
	switch {
	case i.Module == "env" && i.Name == "abort":
		return "AssemblyScript: build with --use abort="
	case i.Module == "env" && i.Name == "memory":
		return "build without --import-memory"
	case i.Module == "env" && (i.Name == "memcpy" || i.Name == "memset" || i.Name == "memmove"):
		return "define it in the module, or build with -fno-builtin -mbulk-memory"
	case i.Module == "env":
		return "define it in the module; a linker's --allow-undefined hides that it is missing"
	case strings.HasPrefix(i.Module, "wasi:") || i.Module == "wasi_unstable":
		return "build for wasip1 or without a system"
	case i.Module == "gojs" || i.Module == "go":
		return "build with GOOS=wasip1"
	}
	return "a policy needs no imports"
}

// String returns a type as "(i32, i64) -> i32".
func (t FuncType) String() string {
	names := func(types []Type) string {
		var s []string
		for _, v := range types {
			s = append(s, map[Type]string{I32: "i32", I64: "i64", F32: "f32", F64: "f64"}[v])
		}
		return "(" + strings.Join(s, ", ") + ")"
	}
	return names(t.Params) + " -> " + names(t.Results)
}
