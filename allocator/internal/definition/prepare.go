// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/cel"
	celcompat "github.com/celset/celset/cel/compat"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
	"github.com/celset/celset/cel/memo"
)

// The author of a claim decides how long it takes to decode, to judge and to compile the claim. So a scheduler has that done
// before, by a Preparer in the background, and its allocators look the result up.

// Preparer compiles what claims say, for the tenants of contexts ([cel.Environment.Compile]). It is safe
// for concurrent use.
type Preparer struct {
	environment *device.Environment
	judge       *costbound.Selectors
	features    dracel.Features
	selectors   atomic.Pointer[selectorSet]
}

// A selectorSet has room for so many compiled selectors, and for about so many bytes of them. With more a
// Preparer begins another one.
const (
	maxSelectors     = 4096
	maxSelectorBytes = 64 << 20
)

// selectorSet has selectors as upstream's evaluator takes them. It forgets none: what is prepared with it
// compiles nothing.
type selectorSet struct {
	*dracel.Cache
	number uint64
	mutex  sync.Mutex
	known  map[selectorText]selectorOutcome
	bytes  int
}

type selectorText struct {
	text string
	// derives: it is the expression of a derived attribute. isJudged: it is that of a claim.
	derives, isJudged bool
}

type selectorOutcome struct {
	reads view.ReadSet
	// driver is the only driver whose devices the selector selects, "" if there may be several.
	driver string
	err    error
}

// NewPreparer returns a Preparer of constraints in the environment and of selectors with the features.
func NewPreparer(environment *device.Environment, features dracel.Features) (*Preparer, error) {
	// What became of a selector is remembered in the sets.
	judge, err := costbound.NewSelectors(cel.Config{CacheBytes: 1})
	if err != nil {
		return nil, err
	}
	p := &Preparer{environment: environment, judge: judge, features: features}
	p.begin(nil)
	return p, nil
}

// begin replaces a set that is full.
func (p *Preparer) begin(full *selectorSet) {
	next := &selectorSet{Cache: dracel.NewCache(maxSelectors, p.features), known: map[selectorText]selectorOutcome{}}
	if full != nil {
		next.number = full.number + 1
	}
	p.selectors.CompareAndSwap(full, next)
}

// Generation is that of the selectors of claims that are prepared now. A claim of another one has to be
// prepared again.
func (p *Preparer) Generation() uint64 { return p.selectors.Load().number }

// Selectors has the compiled selectors of all claims of this generation.
func (p *Preparer) Selectors() *dracel.Cache { return p.selectors.Load().Cache }

// PreparedClaim is a claim whose texts are decoded and compiled. It is not modified.
type PreparedClaim struct {
	meaning *Meaning
	// prefers: a preference is about the claim.
	prefers bool
	// classes are those that it was prepared with.
	classes *Classes
	// content is the result of [ClaimContent], nil if there is none.
	content *fingerprint.Sum
	// selectors has the selectors of the claim and of its classes, reads has what they read.
	selectors    *selectorSet
	selectorsErr error
	reads        map[string]view.ReadSet
	// drivers has for each request and alternative the only driver whose devices it can get, "" if there may be several.
	drivers []string
}

// NeedsPreparation reports whether the claim has texts of its own to decode or to compile, or refers to a
// constraint. Constraints and preferences may be ignored.
func NeedsPreparation(claim *resourceapi.ResourceClaim, constraints bool) bool {
	if constraints && (v1alpha1.Defines(claim) || v1alpha1.HasReference(claim)) {
		return true
	}
	for r := range requests.Each(claim) {
		if len(r.Spec.Selectors) > 0 || len(compat.DerivedAttributes(r.Spec)) > 0 {
			return true
		}
	}
	return false
}

// ClassVersions has the versions of the classes that a claim uses, of which version says them by name, "" for
// those that there are not. If no API server has stored the claim it may change, and what it says is its version.
func ClassVersions(claim *resourceapi.ResourceClaim, version func(name string) string) string {
	var versions strings.Builder
	if claim.ResourceVersion == "" {
		versions.Write(written(&claim.Spec))
	}
	for r := range requests.Each(claim) {
		versions.WriteString(version(r.Spec.DeviceClassName))
		versions.WriteByte('/')
	}
	return versions.String()
}

// VersionOf is the version of a class, or what it says if no API server has stored it, "" if there is none.
func VersionOf(class *resourceapi.DeviceClass, err error) string {
	switch {
	case err != nil:
		return ""
	case class.ResourceVersion != "":
		return class.ResourceVersion
	default:
		return string(written(class))
	}
}

// written is nothing for what can't be written.
func written(m fingerprint.Message) []byte {
	text, _ := fingerprint.AppendMessage(nil, m)
	return text
}

// Content stands for all that is prepared of a claim, besides what is wrong with it.
type Content = fingerprint.Sum

// ContentOf returns the same for claims that ask for the same by equal classes. It is false if that can't be told.
func ContentOf(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) (Content, bool) {
	return ClaimContent(classes, claim)
}

// Content is that of the claim and the classes that it was prepared with. It is false if that can't be told.
func (c *PreparedClaim) Content() (content Content, ok bool) {
	if c.content == nil {
		return content, false
	}
	return *c.content, true
}

// IsFlawless reports whether nothing is wrong with the claim: it may stand for others of the same [Content] then.
// Mistakes name the claim.
func (c *PreparedClaim) IsFlawless() bool {
	m := c.meaning
	return cmp.Or(c.selectorsErr, m.ConstraintsErr, m.PreferencesErr) == nil &&
		!slices.ContainsFunc(slices.Concat(m.Constraints, m.Preferences), func(d *Definition) bool { return d.Mistake != nil })
}

// ClassVersion is that of a class with which the claim was prepared, "" if there was none.
func (c *PreparedClaim) ClassVersion(name string) string {
	return VersionOf(c.classes.Get(name))
}

// Prepare compiles what the claim says: its selectors, and its constraints and preferences unless it is for an
// allocator that ignores them. Mistakes in it are part of the result: the error is that of the context.
func (p *Preparer) Prepare(ctx context.Context, claim *resourceapi.ResourceClaim, from structured.DeviceClassLister, constraints bool) (*PreparedClaim, error) {
	classes := &Classes{DeviceClassLister: from, keepsErrors: true}
	c := &PreparedClaim{meaning: &Meaning{}, classes: classes, reads: map[string]view.ReadSet{}, selectors: p.selectors.Load()}
	if err := v1alpha1.ClaimCarrier(claim).CheckTexts(); err != nil {
		c.meaning.ConstraintsErr, c.selectorsErr = err, err
		return c, nil
	}
	if constraints {
		c.prefers = v1alpha1.HasPreference(claim, classes.HasPreferences)
		var err error
		if c.meaning, err = MeaningOf(ctx, p.environment, claim, classes, c.prefers); err != nil {
			return nil, err
		}
		if err := c.meaning.analyze(ctx, claim); err != nil {
			return nil, err
		}
	}
	if content, ok := ClaimContent(classes, claim); ok {
		c.content = &content
	}
	for r := range requests.Each(claim) {
		ofClass := ""
		if class, err := classes.Get(r.Spec.DeviceClassName); err == nil {
			// What is wrong with a selector of a class is found where it is evaluated.
			if ofClass, _, err = p.addSelectors(ctx, c, class.Spec.Selectors, false); err != nil {
				return nil, err
			}
		}
		own, wrong, err := p.addSelectors(ctx, c, r.Spec.Selectors, true)
		if err != nil {
			return nil, err
		}
		c.drivers = append(c.drivers, cmp.Or(ofClass, own))
		for _, derived := range compat.DerivedAttributes(r.Spec) {
			outcome, err := p.selector(ctx, c.selectors, selectorText{derived.Expression, true, true})
			if err != nil {
				return nil, err
			}
			if wrong == nil && outcome.err != nil {
				wrong = fmt.Errorf("derived attribute %s: %w", derived.Name, outcome.err)
			}
		}
		if c.selectorsErr == nil && wrong != nil {
			c.selectorsErr = fmt.Errorf("claim %s, request %s: %w", klog.KObj(claim), r.Name, wrong)
		}
	}
	return c, nil
}

// addSelectors compiles the selectors of a claim, which are judged, or of a class. driver is the only driver whose devices
// they select, "" if there may be several. wrong is a mistake in a selector, err the error of the context.
func (p *Preparer) addSelectors(ctx context.Context, c *PreparedClaim, selectors []resourceapi.DeviceSelector, judged bool) (driver string, wrong, err error) {
	for i, selector := range selectors {
		if selector.CEL == nil {
			continue
		}
		outcome, err := p.selector(ctx, c.selectors, selectorText{selector.CEL.Expression, false, judged})
		if err != nil {
			return "", nil, err
		}
		c.reads[selector.CEL.Expression] = outcome.reads
		driver = cmp.Or(driver, outcome.driver)
		if wrong == nil && outcome.err != nil {
			wrong = fmt.Errorf("selector #%d: %w", i, outcome.err)
		}
	}
	return driver, wrong, nil
}

// selector is judged and compiled once for each set.
func (p *Preparer) selector(ctx context.Context, to *selectorSet, text selectorText) (selectorOutcome, error) {
	to.mutex.Lock()
	outcome, known := to.known[text]
	to.mutex.Unlock()
	if known {
		return outcome, nil
	}
	outcome, bytes, err := p.compileSelector(ctx, to, text)
	if err != nil {
		return outcome, err
	}
	to.mutex.Lock()
	to.known[text] = outcome
	to.bytes += bytes + 2*len(text.text)
	full := to.bytes > maxSelectorBytes || len(to.known) >= maxSelectors
	to.mutex.Unlock()
	if full {
		p.begin(to)
	}
	return outcome, nil
}

// A compiled selector takes about as much as the judge's program for each evaluator.
const evaluators = 2

func (p *Preparer) compileSelector(ctx context.Context, to *selectorSet, text selectorText) (outcome selectorOutcome, bytes int, err error) {
	if len(text.text) > resourceapi.CELSelectorExpressionMaxLength {
		// The API server refuses it, whoever wrote it into its database.
		outcome.err = fmt.Errorf("longer than %d bytes", resourceapi.CELSelectorExpressionMaxLength)
		return outcome, 0, nil
	}
	expression, wrong := p.judge.Judge(ctx, text.text, text.derives)
	if ctx.Err() != nil {
		return outcome, 0, context.Cause(ctx)
	}
	if expression != nil {
		outcome.reads, bytes = view.NewReadSet(expression.ReadSet()), evaluators*expression.Size()
		outcome.driver = device.DriverOf(expression.AST())
	} else {
		outcome.reads = view.AnyAttribute
	}
	_, isLimit := errors.AsType[*costbound.SelectorError](wrong)
	if failure, ok := errors.AsType[*cel.Error](wrong); text.isJudged && (isLimit || ok && failure.Reason == cel.ReasonTooLong) {
		outcome.err = wrong
		return outcome, bytes, nil
	}
	end, err := cel.TakeTurn(ctx)
	if err != nil {
		return outcome, 0, err
	}
	defer end()
	defer func() {
		if failure := recover(); failure != nil {
			outcome.err = fmt.Errorf("CEL can't compile it, write it another way: %v", failure)
		}
	}()
	compile := (*dracel.Cache).GetOrCompile
	if text.derives {
		compile = celcompat.CompileDerivedAttribute
	}
	if result := compile(to.Cache, text.text); result.Error != nil {
		outcome.err = fmt.Errorf("CEL compile error: %w", result.Error)
	} else if text.isJudged {
		// What is not known to be bounded is not evaluated.
		outcome.err = wrong
	}
	return outcome, bytes, nil
}

// Expressions are those of its constraints and preferences that compile.
func (c *PreparedClaim) Expressions() []*device.Expression {
	var expressions []*device.Expression
	for _, d := range slices.Concat(c.meaning.Constraints, c.meaning.Preferences) {
		if d.Expression != nil {
			expressions = append(expressions, d.Expression)
		}
	}
	return expressions
}

// MayHave reports whether the claim can have devices of a driver, as far as its selectors tell.
func (c *PreparedClaim) MayHave(driver string) bool {
	return len(c.drivers) == 0 || slices.ContainsFunc(c.drivers, func(of string) bool { return of == "" || of == driver })
}

// Err returns the error of the first selector of the claim that can't be used.
func (c *PreparedClaim) Err() error { return c.selectorsErr }

// Generation is that of its selectors.
func (c *PreparedClaim) Generation() uint64 { return c.selectors.number }

// Size is about how many bytes the claim takes, besides its selectors.
func (c *PreparedClaim) Size() memo.Size {
	size := memo.Size{Bytes: 512}
	for _, d := range slices.Concat(c.meaning.Constraints, c.meaning.Preferences) {
		size.Bytes += 512
		if d.Expression != nil {
			size.Parts = append(size.Parts, memo.Part{Of: *d.Expression, Bytes: d.Expression.Size()})
		}
	}
	for text := range c.reads {
		size.Bytes += 128 + len(text)
	}
	for _, err := range []error{c.meaning.ConstraintsErr, c.meaning.PreferencesErr, c.selectorsErr} {
		if err != nil {
			size.Bytes += 2 * len(err.Error())
		}
	}
	return size
}

// Prepared are claims that were prepared, by their UIDs.
type Prepared map[types.UID]*PreparedClaim

// of is nil for a claim that was not prepared.
func (p Prepared) of(claim *resourceapi.ResourceClaim) *PreparedClaim {
	if len(p) == 0 || claim.UID == "" {
		return nil
	}
	return p[claim.UID]
}

// SelectorsErr returns the error of selectors of the claim. If there is one, they must not be evaluated.
func (p Prepared) SelectorsErr(claim *resourceapi.ResourceClaim) error {
	if c := p.of(claim); c != nil {
		return c.Err()
	}
	return nil
}

// Prefers reports whether a preference is about the claim. It is not known of one that was not prepared.
func (p Prepared) Prefers(claim *resourceapi.ResourceClaim) (prefers, known bool) {
	c := p.of(claim)
	return c != nil && c.prefers, c != nil
}

// SelectorsOr has the compiled selectors of all claims, others if there are no claims.
func (p Prepared) SelectorsOr(others func() *dracel.Cache) *dracel.Cache {
	for _, c := range p {
		return c.selectors.Cache
	}
	return others()
}

// ReadByPrepared returns the attributes that a selector of one of the claims, or of their classes, reads.
func ReadByPrepared(p Prepared, selector string) (view.ReadSet, bool) {
	for _, c := range p {
		if read, known := c.reads[selector]; known {
			return read, true
		}
	}
	return view.ReadSet{}, false
}

// MeaningOfPrepared returns the meaning of a claim that was prepared, nil for others.
func MeaningOfPrepared(p Prepared, claim *resourceapi.ResourceClaim) *Meaning {
	if c := p.of(claim); c != nil {
		return c.meaning
	}
	return nil
}

// ContentOfClaim returns the content of a claim, from when it was prepared or else from the classes. It is false if that can't be
// told.
func ContentOfClaim(p Prepared, classes v1alpha1.ClassGetter, claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	if c := p.of(claim); c != nil {
		return c.Content()
	}
	return ClaimContent(classes, claim)
}
