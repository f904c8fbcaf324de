package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// trialWait is how long somebody who tries a webhook waits for what comes of it before the page
// says that it is under way.
const trialWait = 3 * time.Second

// hookCard is one webhook.
type hookCard struct {
	admin.HookState

	Told        []string // of what it is told
	Open, Trash string   // links to its deliveries; "": the visitor may not see them
	Changeable  bool     // here, by the visitor
}

// mayHook says which changes the visitor's roles allow.
type mayHook struct{ Put, Pause, Resume, Test, Delete bool }

type webhooksView struct {
	page
	formView

	Board string
	Hooks []hookCard
	May   mayHook
	Hook  hookForm
}

type webhookView struct {
	page
	formView

	Board string
	Card  hookCard
	May   mayHook
	Hook  hookForm
	Tried string // the delivery of a trial of which it is not known yet what came
}

func hooksPath(board string) string { return "/ui/boards/" + url.PathEscape(board) + "/webhooks" }

func hookPath(board, name string) string { return hooksPath(board) + "/" + url.PathEscape(name) }

func mayHooks(v *visit, board string) mayHook {
	may := func(call string) bool { return v.session.MayAdminister(call, board) }
	return mayHook{may("PutWebhook"), may("PauseWebhook"), may("ResumeWebhook"), may("TestWebhook"), may("DeleteWebhook")}
}

// complete fills in what the visitor can choose from.
func (f *hookForm) complete(v *visit, of string) {
	f.Inside = v.has(tenant.Operator)
	for _, served := range v.session.Boards() {
		if name := served.Config.Name; name != of {
			f.Boards = append(f.Boards, name)
		}
	}
}

func newHookCard(v *visit, s *admin.HookState) hookCard {
	card := hookCard{HookState: *s, Changeable: !s.Declared && (len(s.Networks) == 0 || v.has(tenant.Operator))}
	for _, kind := range s.Events {
		card.Told = append(card.Told, kind.String())
	}
	if v.session.May("ListJobs", s.Deliveries) {
		of := asked{Filter: "name = " + quoted(s.Key())}
		card.Open = of.link(s.Deliveries)
		of.Tab = "trashed"
		card.Trash = of.link(s.Deliveries)
	}
	return card
}

func (u *UI) webhooksPage(w http.ResponseWriter, r *http.Request, v *visit) {
	u.showWebhooks(w, r, v, http.StatusOK, formView{}, newHookForm())
}

func (u *UI) showWebhooks(w http.ResponseWriter, r *http.Request, v *visit, status int, form formView, hook hookForm) {
	name := r.PathValue("board")
	list, err := v.session.Webhooks(r.Context(), "", name)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := &webhooksView{page: u.boardsPage(r, v, "Webhooks of "+name, name), formView: form, Board: name, May: mayHooks(v, name), Hook: hook}
	view.Poll, view.Path = overviewPoll, hooksPath(name)
	view.Hook.complete(v, name)
	for i := range list {
		view.Hooks = append(view.Hooks, newHookCard(v, &list[i]))
	}
	u.show(w, r, status, "webhooks", view)
}

func (u *UI) webhookPage(w http.ResponseWriter, r *http.Request, v *visit) {
	u.showWebhook(w, r, v, http.StatusOK, formView{}, nil)
}

// showWebhook shows one webhook, with a form that is filled with what it is, or with what was
// sent.
func (u *UI) showWebhook(w http.ResponseWriter, r *http.Request, v *visit, status int, form formView, sent *hookForm) {
	on, name := r.PathValue("board"), r.PathValue("webhook")
	s, err := v.session.Webhook(r.Context(), "", on, name)
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	view := &webhookView{page: u.boardsPage(r, v, "Webhook "+name+" of "+on, on), formView: form, Board: on, Card: newHookCard(v, &s), May: mayHooks(v, on), Hook: hookFormOf(&s)}
	view.Poll, view.Path = overviewPoll, hooksPath(on)
	if sent != nil {
		view.Hook, view.Hook.Made = *sent, true
	}
	view.Hook.complete(v, on)
	if id, err := job.ParseID(r.URL.Query().Get("trial")); err == nil && id.String() != s.Trial.ID {
		view.Tried = id.String()
	}
	u.show(w, r, status, "webhook", view)
}

// putWebhook makes a webhook, or changes one that is named by the path; or shows the form
// again, with what is wrong where it is.
func (u *UI) putWebhook(w http.ResponseWriter, r *http.Request, v *visit) {
	on, form := r.PathValue("board"), formView{}
	given := hookFormFrom(r.PostForm)
	again := func(status int) { u.showWebhooks(w, r, v, status, form, given) }
	if name := r.PathValue("webhook"); name != "" {
		given.Name = name
		again = func(status int) { u.showWebhook(w, r, v, status, form, &given) }
	}
	deed := admin.Deed{Call: "PutWebhook", Board: on, Name: given.Name, Remote: r.RemoteAddr}
	hook, err := given.hook(on, r.PostForm.Get("secrets"))
	secret := ""
	if err == nil {
		version, _ := strconv.ParseUint(given.Version, 10, 64) // nothing: there is none yet
		hook.IfVersion = &version
		_, secret, err = v.session.PutWebhook(r.Context(), hook)
	}
	if failed := v.session.Did(deed, err); failed != nil {
		u.fail(w, r, v, errors.Join(err, failed))
		return
	}
	switch job.KindOf(err) {
	case job.NoKind:
		u.madeWebhook(w, r, v, &hook, secret)
		return
	case job.PermissionDenied:
		u.fail(w, r, v, err)
		return
	case job.NotFound:
		if !strings.HasPrefix(plain(err), "deliveries: ") { // but the board that is told of
			u.fail(w, r, v, err)
			return
		}
	case job.Aborted:
		if err = job.Errorf(job.Aborted, "somebody has changed it since this page was made: look at it again, and send the form anew"); given.Version == "" {
			err = job.Errorf(job.Aborted, "name: there is a webhook of this name: change that one, or choose another name")
		}
	}
	form.refuse(err)
	again(statusOf(err))
}

type madeHookView struct {
	page
	Name   string
	Secret string
	Both   bool // another secret signs beside it
	Back   string
}

// madeWebhook shows the secret that was made, which nobody sees again, or goes on to the
// webhook where none was.
func (u *UI) madeWebhook(w http.ResponseWriter, r *http.Request, v *visit, hook *admin.NewWebhook, secret string) {
	to := hookPath(hook.Board, hook.Name)
	if secret == "" {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	u.show(w, r, http.StatusOK, "webhookmade", madeHookView{
		page: u.page(r, v, "Secret of "+hook.Name), Name: hook.Name, Secret: secret, Both: hook.NewSecret, Back: to,
	})
}

// hookChanges are what can be done to a webhook beside changing what it is, by the last part of
// the path, and the call that does the same.
var hookChanges = map[string]string{"pause": "PauseWebhook", "resume": "ResumeWebhook", "test": "TestWebhook", "delete": "DeleteWebhook"}

// changeWebhook does something to a webhook, and shows it, or those that are left.
func (u *UI) changeWebhook(w http.ResponseWriter, r *http.Request, v *visit) {
	on, name, change := r.PathValue("board"), r.PathValue("webhook"), r.PathValue("change")
	call, ok := hookChanges[change]
	if !ok {
		u.fail(w, r, v, errNoPage)
		return
	}
	if change == "delete" && !meant(r) && v.session.MayAdminister(call, on) {
		u.ask(w, r, question{
			page: u.page(r, v, "Delete the webhook "+name), Verb: "Delete", Grave: true, Action: hookPath(on, name) + "/delete", Back: hookPath(on, name),
			Asks: "Delete this webhook? What was not delivered yet stays on the board of its deliveries, and nobody sends it.",
		})
		return
	}
	to, err := u.doWebhook(r.Context(), v, change, on, name)
	if err = errors.Join(err, v.session.Did(admin.Deed{Call: call, Board: on, Name: name, Remote: r.RemoteAddr}, err)); err != nil {
		u.fail(w, r, v, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// doWebhook makes a change, and returns the page that shows what came of it.
func (u *UI) doWebhook(ctx context.Context, v *visit, change, on, name string) (to string, err error) {
	to = hookPath(on, name)
	switch change {
	case "delete":
		return hooksPath(on), v.session.DeleteWebhook(ctx, "", on, name)
	case "test":
		deliveries, id, err := v.session.TestWebhook(ctx, "", on, name)
		if err != nil {
			return "", err
		}
		if b, err := v.session.Board(ctx, deliveries, "GetJobs"); err == nil { // else the page says that it is under way
			_, _ = b.Get(ctx, []job.ID{id}, board.GetOptions{Wait: trialWait})
		}
		return to + "?trial=" + id.String(), nil
	}
	_, err = v.session.PauseWebhook(ctx, "", on, name, change == "pause")
	return to, err
}

// formatVersion writes a version for a form.
func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }
