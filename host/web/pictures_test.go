package web_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/job"
)

// TestScreenshots has the pictures of the documentation show what the pages look
// like: it takes them anew and compares. Times and letters' edges may differ, what
// stands where may not. With BOARDD_SCREENSHOTS=write it writes them: make
// screenshots.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/usr/share/fonts/truetype/dejavu"); err != nil {
		testneed.Skip(t, "the pictures are made with the fonts of Debian's fonts-dejavu-core: "+err.Error())
	}
	s := newSiteOn(t, "embedded", embedded.Program(), "{}", nil)
	stuck := s.exhibit(t)
	tab := chromium(t)
	run(tab, t, "signing in", chromedp.EmulateViewport(1280, 860), signIn(s.server.URL, operatorSecret))
	for name, path := range map[string]string{
		"board": "/ui/boards/jobs", "charts": "/ui/boards/jobs/charts", "job": "/ui/boards/jobs/jobs/" + stuck.String(), "policies": "/ui/boards/jobs/policies",
	} {
		run(tab, t, name, chromedp.Navigate(s.server.URL+path), chromedp.WaitReady(chromedp.CSS("footer")),
			chromedp.Evaluate[chromedp.Void](atLeisure))
		shot, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(shot))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("..", "..", "docs", "pictures", name+".png")
		if os.Getenv("BOARDD_SCREENSHOTS") == "write" {
			keepPicture(t, file, picture)
			continue
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		old, err := png.Decode(bytes.NewReader(kept))
		if err != nil {
			t.Fatal(err)
		}
		if share := unlike(old, picture); share > mostUnlike {
			t.Errorf("%s shows something else than the page: %.1f %% of it differ, want at most %.1f; make screenshots takes it anew", file, 100*share, 100*mostUnlike)
		}
		if len(kept) > maxPicture {
			t.Errorf("%s has %d bytes, want at most %d", file, len(kept), maxPicture)
		}
	}
}

// atLeisure shows what took long on a busy machine as it is on one with time, and what was
// just done as of a moment ago: longer words would break lines elsewhere.
const atLeisure = `(() => {
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let text; (text = texts.nextNode());) {
		text.data = text.data.replace(/(after (?:waiting )?)\d+ (?:s|min)\b/g, '$1less than 1 s')
			.replace(/(?:\d+ (?:s|min)|less than 1 s) ago/g, '3 s ago');
	}
})()`

const (
	maxPicture = 150 << 10
	mostUnlike = 0.03 // share of the tiles that may differ: a picture has a dozen times that are new each time
	tile       = 16   // pixels
	likeness   = 20   // of 255, between the brightness of two tiles
)

// unlike returns the share of tiles in which two pictures differ.
func unlike(a, b image.Image) float64 {
	if a.Bounds().Size() != b.Bounds().Size() {
		return 1
	}
	differ, all := 0, 0
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y += tile {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x += tile {
			all++
			if d := brightness(a, x, y) - brightness(b, x, y); d > likeness || d < -likeness {
				differ++
			}
		}
	}
	return float64(differ) / float64(all)
}

func brightness(p image.Image, left, top int) int {
	sum, n := 0, 0
	for y := top; y < min(top+tile, p.Bounds().Max.Y); y++ {
		for x := left; x < min(left+tile, p.Bounds().Max.X); x++ {
			sum, n = sum+int(color.GrayModel.Convert(p.At(x, y)).(color.Gray).Y), n+1
		}
	}
	return sum / n
}

// TestUnlike has a picture be like itself, and unlike one on which everything
// stands a line lower.
func TestUnlike(t *testing.T) {
	t.Parallel()
	kept, err := os.ReadFile(filepath.Join("..", "..", "docs", "pictures", "board.png"))
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(kept))
	if err != nil {
		t.Fatal(err)
	}
	lower := image.NewRGBA(picture.Bounds())
	draw.Draw(lower, lower.Bounds().Add(image.Pt(0, 24)), picture, image.Point{}, draw.Src)
	if same, other := unlike(picture, picture), unlike(picture, lower); same > 0 || other < 2*mostUnlike {
		t.Errorf("it differs from itself in %v of its tiles, from one a line lower in %v", same, other)
	}
}

// keepPicture writes a picture with at most 256 colors, which a page has hardly
// more of, and which makes it a third as large.
func keepPicture(t *testing.T, file string, picture image.Image) {
	t.Helper()
	uses := map[color.RGBA]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			uses[rounded(picture.At(x, y))]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(uses), func(a, b color.RGBA) int {
		return cmp.Or(uses[b]-uses[a], int(a.R)-int(b.R), int(a.G)-int(b.G), int(a.B)-int(b.B))
	})
	var palette color.Palette
	for _, c := range colors[:min(len(colors), 256)] {
		palette = append(palette, c)
	}
	small := image.NewPaletted(picture.Bounds(), palette)
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			small.Set(x, y, rounded(picture.At(x, y)))
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rounded is a color with six bits for each of its parts.
func rounded(c color.Color) color.RGBA {
	r, g, b, _ := c.RGBA()
	six := func(v uint32) uint8 { return uint8(v>>10<<2 | v>>14) } //nolint:gosec // a color has 16 bits
	return color.RGBA{six(r), six(g), six(b), 255}
}

// exhibit puts an hour of work onto the board, a minute at a time, and returns a
// job that has had a hard life.
func (s *site) exhibit(t *testing.T) job.ID {
	t.Helper()
	jobs := s.board(t, adminSecret, "jobs")
	customers, kinds := []string{"acme", "initech", "umbrella"}, []string{"resize-image", "send-mail", "render-report", "train-model"}
	posted := 0
	postOne := func(name string, more ...job.Label) job.ID {
		posted++
		id, err := job.ParseID(fmt.Sprintf("01a1ff01-521f-7cd8-bbeb-%012x", 0x4c11*posted))
		if err != nil {
			t.Fatal(err)
		}
		return post(t, jobs, job.Posting{
			ID: id, Name: name, Labels: append(more, job.Label{Key: "customer", Value: customers[posted%len(customers)]}),
			Details: []byte(`{"source":"/in/7.png","sizes":[120,640,1280]}`), Operations: []job.NewOperation{{Name: "fetch"}, {Name: "convert"}, {Name: "store"}},
		})
	}
	begun := time.Now()
	for minute := range 59 {
		for n := range 4 + minute*7%5 {
			postOne(fmt.Sprintf("%s-%d", kinds[(minute*3+n*n)%len(kinds)], 100+posted))
		}
		got, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: fmt.Sprintf("worker-%d", 1+minute%4), Max: 3 + minute*5%6})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range got.Claims {
			ref := board.Ref{ID: c.ID, Token: jobs.FormatToken(c.ID, c.Token)}
			if minute%9 == 4 && i == 0 {
				_, err = jobs.Abandon(t.Context(), []board.Ref{ref}, board.AbandonOptions{Reason: "the source could not be read"})
			} else {
				_, err = jobs.Consume(t.Context(), []board.Ref{ref})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		jobs.Sample(begun.Add(time.Duration(minute-58) * time.Minute))
	}
	hard := &worker{t: t, board: jobs, id: postOne("train-model-7", job.Label{Key: "gpu", Value: "a100"})}
	s.push(t, "gpus", "the job needs another GPU than this worker has")
	for _, reason := range []string{"the disk of this worker is full", "out of memory after 3 of 90 steps"} {
		if err := hard.claim(); err != nil {
			t.Fatal(err)
		}
		if err := hard.log("loading the model"); err != nil {
			t.Fatal(err)
		}
		if errs, err := jobs.Abandon(t.Context(), []board.Ref{hard.ref}, board.AbandonOptions{Reason: reason}); err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
	}
	s.push(t, "gpus-next", "the job needs a GPU", "the worker has none")
	s.decide(t, "gpus", `{"gold":700}`, "gpus-next")
	if _, err := jobs.Claim(t.Context(), board.ClaimRequest{Owner: "worker-2", Max: 4, Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	return hard.id
}
