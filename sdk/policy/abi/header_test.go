package abi_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// offsets are the fields of boardd_policy.h, by the numbers of this package.
var offsets = map[string]int{
	"boardd_block, magic": abi.HMagic, "boardd_block, major": abi.HMajor, "boardd_block, minor": abi.HMinor,
	"boardd_block, header_size": abi.HHeaderSize, "boardd_block, total": abi.HTotal, "boardd_block, call": abi.HCall,
	"boardd_block, count": abi.HCount, "boardd_block, records": abi.HRecords, "boardd_block, record_size": abi.HRecordSize,
	"boardd_block, out": abi.HOut, "boardd_block, out_size": abi.HOutSize, "boardd_block, now": abi.HNow,
	"boardd_block, worker": abi.HWorker, "boardd_block, parameters": abi.HParameters, "boardd_block, text": abi.HText,
	"boardd_block, text_length": abi.HTextLength, "boardd_block, index": abi.HIndex,
	"boardd_job, id": abi.JID, "boardd_job, sequence": abi.JSequence, "boardd_job, created": abi.JCreated, "boardd_job, not_before": abi.JNotBefore,
	"boardd_job, priority": abi.JPriority, "boardd_job, attempt": abi.JAttempt, "boardd_job, max_attempts": abi.JMaxAttempts,
	"boardd_job, operation_priority": abi.JOperationPriority, "boardd_job, name": abi.JName, "boardd_job, labels": abi.JLabels, "boardd_job, facts": abi.JFacts,
	"boardd_key, key": abi.KKey, "boardd_key, running": abi.KRunning, "boardd_key, waiting": abi.KWaiting, "boardd_key, served": abi.KServed, "boardd_key, oldest": abi.KOldest,
	"boardd_cell, tag": abi.CTag, "boardd_cell, length": abi.CLength, "boardd_cell, value": abi.CValue,
	"boardd_verdict, decision": abi.VDecision, "boardd_verdict, reason": abi.VReason, "boardd_verdict, until": abi.VUntil,
	"boardd_rank, score": abi.RScore, "boardd_rank, full": abi.RFull, "boardd_rank, most": abi.RMost,
}

var numbers = map[string]int{
	"BOARDD_MAGIC": abi.Magic, "BOARDD_MAX_BLOCK": abi.MaxBlock, "BOARDD_OK": abi.OK, "BOARDD_FAILED": abi.Failed,
	"BOARDD_INT": int(abi.Int), "BOARDD_FLOAT": int(abi.Float), "BOARDD_BOOL": int(abi.Bool), "BOARDD_STRING": int(abi.String), "BOARDD_LIST": int(abi.List),
	"BOARDD_MAP": int(abi.Map), "BOARDD_TIME": int(abi.Time), "BOARDD_DURATION": int(abi.Duration), "BOARDD_ZONE": int(abi.Zone),
	"sizeof(boardd_block)": abi.HeaderSize, "sizeof(boardd_job)": abi.JobSize, "sizeof(boardd_key)": abi.KeySize,
	"sizeof(boardd_cell)": abi.CellSize, "sizeof(boardd_verdict)": abi.VerdictSize, "sizeof(boardd_rank)": abi.RankSize,
}

// The C header says what this package says.
func TestHeader(t *testing.T) {
	t.Parallel()
	clang := testneed.Program(t, "clang")
	header, err := os.ReadFile("../boardd_policy.h")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	source.WriteString("#include \"boardd_policy.h\"\n#include <stddef.h>\n")
	for field, at := range offsets {
		fmt.Fprintf(&source, "_Static_assert(offsetof(%s) == %d, \"%s\");\n", field, at, field)
	}
	for name, n := range numbers {
		fmt.Fprintf(&source, "_Static_assert(%s == %du, \"%s\");\n", name, n, name)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"boardd_policy.h": string(header), "check.c": source.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compile := exec.CommandContext(t.Context(), clang, "--target=wasm32", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fsyntax-only", filepath.Join(dir, "check.c"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The page names every offset of a header, a job and a key.
func TestPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../abi.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "\n\n")
	for name, at := range offsets {
		kind, field, _ := strings.Cut(strings.TrimPrefix(name, "boardd_"), ", ")
		head := map[string]string{"block": "| header, 96 bytes |", "job": "| job, 96 bytes |", "key": "| key, 48 bytes |"}[kind]
		skip := map[string]bool{"minor": true, "record_size": true, "out_size": true}[field] // second of a line
		if head == "" || skip {
			continue
		}
		found := false
		for _, part := range parts {
			found = found || strings.Contains(part, head) && strings.Contains(part, fmt.Sprintf("\n| %d | ", at))
		}
		if !found {
			t.Errorf("abi.md has no line for %s at %d", name, at)
		}
	}
}
