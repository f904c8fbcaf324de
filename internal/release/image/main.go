// Command image makes the container image of a release: of the unpacked archives for Linux,
// an index with an image for each platform, as an OCI layout in a tar. It needs no daemon and
// no right. The same input gives the same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	r, into, err := read(os.Args[1:])
	if err == nil {
		err = r.write(into)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// release is what an image is made of.
type release struct {
	version, commit string
	made            time.Time         // of the commit
	unpacked        map[string]string // folders by the architecture of their programs
}

// read takes a command line apart.
func read(args []string) (r release, into string, err error) {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: image --version V --commit C --epoch SECONDS --into FILE ARCHITECTURE=UNPACKED...")
		flags.PrintDefaults()
	}
	flags.StringVar(&r.version, "version", "", "version of the release")
	flags.StringVar(&r.commit, "commit", "", "commit of the release")
	flags.StringVar(&into, "into", "", "file to write")
	epoch := flags.Int64("epoch", 0, "time of the commit, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return r, "", err
	}
	r.made, r.unpacked = time.Unix(*epoch, 0).UTC(), map[string]string{}
	for _, arg := range flags.Args() {
		architecture, folder, ok := strings.Cut(arg, "=")
		if !ok || architecture == "" || folder == "" {
			return r, "", fmt.Errorf("want ARCHITECTURE=UNPACKED, got %q", arg)
		}
		r.unpacked[architecture] = folder
	}
	if r.version == "" || r.commit == "" || *epoch <= 0 || into == "" || len(r.unpacked) == 0 {
		return r, "", fmt.Errorf("want --version, --commit, --epoch, --into and at least one ARCHITECTURE=UNPACKED, got %q", args)
	}
	return r, into, nil
}
