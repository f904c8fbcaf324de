package filter

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
	"github.com/boardd/boardd/sdk/shorten"
)

// Max is how many bytes a filter may have.
const Max = 4 << 10

// Parse reads `FIELD OP VALUE` joined by AND. A value with spaces or signs
// stands in double quotes, with \" and \\ inside.
func Parse(text string) (Filter, error) {
	if len(text) > Max {
		return Filter{}, job.Errorf(job.Invalid, "filter: %d bytes are too many: want at most %d", len(text), Max)
	}
	if !utf8.ValidString(text) {
		return Filter{}, job.Errorf(job.Invalid, "filter: the text is not valid UTF-8")
	}
	p := parser{text: text}
	var f Filter
	p.space()
	if p.at == len(text) {
		return f, nil
	}
	for {
		t, err := p.term()
		if err != nil {
			return Filter{}, err
		}
		f.terms = append(f.terms, t)
		p.space()
		if p.at == len(text) {
			f.Text = f.canonical()
			return f, nil
		}
		start := p.at
		if word := p.word(); !strings.EqualFold(word, "AND") {
			return Filter{}, p.wrong(start, "want AND between two conditions")
		}
	}
}

// canonical writes the filter so that two that mean the same by their form are
// the same text.
func (f *Filter) canonical() string {
	var b strings.Builder
	for i := range f.terms {
		t := &f.terms[i]
		if i > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(fieldTexts[t.field])
		b.WriteString(t.key)
		b.WriteByte(' ')
		b.WriteString(operatorTexts[t.op])
		b.WriteByte(' ')
		b.WriteString(quoteValue(t.value))
	}
	return b.String()
}

func quoteValue(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

var fieldTexts = [...]string{"name", "owner", "priority", "attempt", "createdAt", "unique.key", "batch", "labels.", "details."}

var fieldNames = []string{"name", "owner", "priority", "attempt", "createdAt", "unique.key", "batch", "labels.KEY", "details.KEY"}

type parser struct {
	text string
	at   int
}

func (p *parser) wrong(at int, message string) error {
	return job.Errorf(job.Invalid, "filter: at character %d: %s", utf8.RuneCountInString(p.text[:at])+1, message)
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// word reads up to the next space, sign or quote.
func (p *parser) word() string {
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n=!<>\"", p.text[p.at]) < 0 {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *parser) term() (term, error) {
	p.space()
	start := p.at
	var t term
	name := p.word()
	if err := t.setField(name); err != "" {
		return t, p.wrong(start, err)
	}
	p.space()
	if !p.operator(&t) {
		return t, p.wrong(p.at, "want one of = != < <= > >= after "+name)
	}
	if t.op == equal && strings.HasPrefix(p.text[p.at:], "=") {
		return t, p.wrong(p.at-1, "want one of = != < <= > >= after "+name+", not ==")
	}
	p.space()
	start = p.at
	value, err := p.value()
	if err != nil {
		return t, err
	}
	if problem := t.setValue(value); problem != "" {
		return t, p.wrong(start, problem)
	}
	return t, nil
}

func (t *term) setField(name string) string {
	for f, known := range fieldTexts {
		if !strings.HasSuffix(known, ".") {
			if name == known {
				t.field = field(f) //nolint:gosec // an index of a short array
				return ""
			}
			continue
		}
		if key, ok := strings.CutPrefix(name, known); ok {
			if key == "" {
				return "want a key after " + known
			}
			t.field, t.key = field(f), key //nolint:gosec // an index of a short array
			return ""
		}
	}
	if name == "" {
		return "want a field: one of " + strings.Join(fieldNames, ", ")
	}
	return "there is no field " + strconv.Quote(shorten.To(name, 64)) + nearest.HintOr(shorten.To(name, 64), fieldNames)
}

func (p *parser) operator(t *term) bool {
	for _, op := range []operator{unequal, lessEqual, greaterEqual, equal, less, greater} { // the longer ones first
		if strings.HasPrefix(p.text[p.at:], operatorTexts[op]) {
			p.at += len(operatorTexts[op])
			t.op = op
			return true
		}
	}
	return false
}

func (p *parser) value() (string, error) {
	if p.at == len(p.text) {
		return "", p.wrong(p.at, "want a value")
	}
	if p.text[p.at] != '"' {
		start := p.at
		if v := p.word(); v != "" {
			return v, nil
		}
		return "", p.wrong(start, "want a value; one with signs in it stands in double quotes")
	}
	start := p.at
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; c {
		case '"':
			p.at++
			return b.String(), nil
		case '\\':
			p.at++
			if p.at == len(p.text) || (p.text[p.at] != '"' && p.text[p.at] != '\\') {
				return "", p.wrong(p.at-1, `want \" or \\ after a backslash`)
			}
			b.WriteByte(p.text[p.at])
		default:
			b.WriteByte(c)
		}
	}
	return "", p.wrong(start, "the quoted value has no end")
}

// setValue reads the value as the field's type and returns what is wrong.
func (t *term) setValue(value string) string {
	t.value = value
	switch t.field {
	case fieldPriority:
		p, ok := job.ParsePriority(strings.ToUpper(value))
		if !ok {
			return strconv.Quote(shorten.To(value, 64)) + " is no priority: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW"
		}
		t.value, t.rank = p.String(), int64(p)
	case fieldAttempt:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return strconv.Quote(shorten.To(value, 64)) + " is no whole number"
		}
		t.rank = n
	case fieldCreatedAt:
		at, err := time.Parse(time.RFC3339Nano, value)
		if err != nil {
			return strconv.Quote(shorten.To(value, 64)) + " is no time: want one like 2026-01-02T15:04:05Z"
		}
		t.time = at
	case fieldLabel, fieldDetail:
		t.number, t.isNumber = readNumber(value)
	case fieldName, fieldOwner, fieldUnique, fieldBatch:
	}
	return ""
}
