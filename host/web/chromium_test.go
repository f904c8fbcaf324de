package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/sdk/sleep"
)

// patience bounds one step of a browser: it is for a machine that is busy with
// other things.
const patience = 60 * time.Second

// step is one thing that a person does with a browser, or waits for.
type step = chromedp.Action[chromedp.Void]

// chromium starts a browser for the test and returns a tab of it. Its helper processes
// fail to start now and then on a machine on which many others do, which is none of the
// pages' faults: so it is tried again.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program := testneed.Program(t, "chromium")
	const tries = 3
	for try := 1; ; try++ {
		tab, stop, err := startChromium(t, program)
		if err == nil {
			t.Cleanup(stop)
			return tab
		}
		stop()
		if try == tries {
			t.Fatalf("the browser does not start, %d times: %v", tries, err)
		}
		t.Logf("the browser does not start: %v", err)
		time.Sleep(time.Second)
	}
}

// startChromium starts a browser, which stop ends.
func startChromium(t *testing.T, program string) (tab context.Context, stop func(), err error) {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.WSURLReadTimeout(patience))
	browser, stopBrowser := chromedp.NewExecAllocator(t.Context(), options...)
	tab, closeTab := chromedp.NewContext(browser)
	return tab, func() { closeTab(); stopBrowser() }, chromedp.Do(tab)
}

func run(tab context.Context, t *testing.T, what string, steps ...step) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatalf("%s: %v; the page says:\n%s", what, err, said(tab))
	}
}

// said is what a page says, as far as it can be had.
func said(tab context.Context) string {
	ctx, cancel := context.WithTimeout(tab, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// value evaluates an expression in the page.
func value[T any](tab context.Context, t *testing.T, expression string, options ...chromedp.EvaluateOption) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		t.Fatalf("%.80s: %v; the page says:\n%s", expression, err, said(tab))
	}
	return v
}

// shows waits until the page says something, also if another page has to come
// first.
func shows(text string) step {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		quoted, err := json.Marshal(text)
		if err != nil {
			return err
		}
		look := chromedp.Evaluate[bool](fmt.Sprintf("document.readyState !== 'loading' && document.body.innerText.includes(%s)", quoted))
		for {
			if there, err := look(ctx, target); err == nil && there {
				return nil
			}
			if err := sleep.For(ctx, 50*time.Millisecond); err != nil {
				return fmt.Errorf("the page does not say %q: %w", text, err)
			}
		}
	})
}

// meanwhile does something that is none of the browser's business.
func meanwhile(do func() error) step {
	return chromedp.Func(func(context.Context, *chromedp.Target) error { return do() })
}

func click(selector string) step { return chromedp.Click(chromedp.CSS(selector)) }

func keys(selector, text string) step { return chromedp.SendKeys(chromedp.CSS(selector), text) }

func signIn(address, secret string) step {
	return chromedp.Steps(chromedp.Navigate(address+"/"), chromedp.WaitVisible(chromedp.CSS("input[name=token]")),
		keys("input[name=token]", secret+"\r"), shows("Sign out"))
}
