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

// The author of a claim determines how long it takes to decode the claim, to bound the cost of its selectors, and to compile
// its selectors and expressions. A scheduler must not spend this time in a scheduling cycle. So a Preparer does the work in the
// background, and allocators use its results. Bounding the cost of a selector is called judging it.

// Preparer compiles selectors and expressions for the tenant in the context ([cel.Environment.Compile]). It is
// concurrency-safe.
type Preparer struct {
	environment *device.Environment
	judge       *costbound.Selectors
	features    dracel.Features
	selectors   atomic.Pointer[selectorSet]
}

// These are the limits for a selectorSet: the exact number of selectors, and the estimated number of bytes. When a set is full,
// the Preparer starts an empty set.
const (
	maxSelectors     = 4096
	maxSelectorBytes = 64 << 20
)

// selectorSet holds compiled selectors. It evicts none, so allocating a prepared claim compiles nothing.
type selectorSet struct {
	*dracel.Cache
	number uint64
	mutex  sync.Mutex
	known  map[selectorText]selectorOutcome
	bytes  int
}

type selectorText struct {
	text string
	// derives is true for the expression of a derived attribute. isJudged is true for an expression of a claim, whose author is
	// not trusted. Such an expression is compiled only if the judge finds a bound of its cost.
	derives, isJudged bool
}

type selectorOutcome struct {
	reads view.ReadSet
	// driver is the only driver whose devices the selector can select. It is "" if the driver is not known.
	driver string
	err    error
}

// NewPreparer returns a Preparer. It compiles constraints in the environment, and selectors with the given features.
func NewPreparer(environment *device.Environment, features dracel.Features) (*Preparer, error) {
	// The selector sets store the results of the judge, so the judge needs no cache.
	judge, err := costbound.NewSelectors(cel.Config{CacheBytes: 1})
	if err != nil {
		return nil, err
	}
	p := &Preparer{environment: environment, judge: judge, features: features}
	p.begin(nil)
	return p, nil
}

// begin replaces the current selector set by an empty set with the next number, if the current set is full.
func (p *Preparer) begin(full *selectorSet) {
	next := &selectorSet{Cache: dracel.NewCache(maxSelectors, p.features), known: map[selectorText]selectorOutcome{}}
	if full != nil {
		next.number = full.number + 1
	}
	p.selectors.CompareAndSwap(full, next)
}

// Generation returns the number of the current selector set. A full set is replaced. A claim that was prepared with an earlier
// set must be prepared again, because the current set lacks the claim's selectors.
func (p *Preparer) Generation() uint64 { return p.selectors.Load().number }

// Selectors returns the compiled selectors of the current set.
func (p *Preparer) Selectors() *dracel.Cache { return p.selectors.Load().Cache }

// PreparedClaim is a claim with its decoded and compiled selectors, constraints and preferences. It is never modified.
type PreparedClaim struct {
	definitions *ClaimDefinitions
	// prefers is true if a preference covers one of the claim's requests.
	prefers bool
	// classes holds the versions of the classes that the claim was prepared with.
	classes *Classes
	// content is the fingerprint that [ClaimContent] returned, or nil if it returned false.
	content *fingerprint.Sum
	// selectors is the set with the selectors of the claim and its classes. reads maps each selector to the attributes it reads.
	selectors    *selectorSet
	selectorsErr error
	reads        map[string]view.ReadSet
	// drivers has an entry per request and alternative: the only driver whose devices it can get, or "" if the driver isn't known.
	drivers []string
}

// NeedsPreparation reports whether the claim has selectors or expressions to compile, or refers to a constraint. If constraints
// is false, constraints and preferences are ignored.
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

// ClassVersions returns a key for the versions of the classes that a claim uses. version returns the version of a class, or ""
// if the class doesn't exist. If no API server has stored the claim, the key contains its specification, because it may change.
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

// VersionOf returns the version of a class, or its specification if no API server has stored it, or "" if err is not nil.
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

// written returns the encoded message, or nil if the message can't be encoded.
func written(m fingerprint.Message) []byte {
	text, _ := fingerprint.AppendMessage(nil, m)
	return text
}

// Content is the fingerprint of everything that a Preparer compiles for a claim. It does not cover errors.
type Content = fingerprint.Sum

// ContentOf returns the [Content] of a claim. Two claims have equal contents if everything that a Preparer compiles for them is
// equal. ok is false if the fingerprint of the claim or of a class can't be computed.
func ContentOf(claim *resourceapi.ResourceClaim, classes structured.DeviceClassLister) (Content, bool) {
	return ClaimContent(classes, claim)
}

// Content returns the content of the claim and of the classes that it was prepared with. ok is false if the content is missing.
func (c *PreparedClaim) Content() (content Content, ok bool) {
	if c.content == nil {
		return content, false
	}
	return *c.content, true
}

// IsFlawless reports whether the claim has no errors. Other claims with the same [Content] can then use the prepared claim.
// They can't use a claim with errors, because error messages contain the name of the claim.
func (c *PreparedClaim) IsFlawless() bool {
	m := c.definitions
	return cmp.Or(c.selectorsErr, m.ConstraintsErr, m.PreferencesErr) == nil &&
		!slices.ContainsFunc(slices.Concat(m.Constraints, m.Preferences), func(d *Definition) bool { return d.Mistake != nil })
}

// ClassVersion returns the version of the class that the claim was prepared with, or "" if the class did not exist.
func (c *PreparedClaim) ClassVersion(name string) string {
	return VersionOf(c.classes.Get(name))
}

// Prepare compiles the selectors of the claim. If constraints is true, it also compiles constraints and preferences. Mistakes
// in the claim are part of the prepared claim. Prepare returns an error only if the context ended.
func (p *Preparer) Prepare(ctx context.Context, claim *resourceapi.ResourceClaim, from structured.DeviceClassLister, constraints bool) (*PreparedClaim, error) {
	classes := &Classes{DeviceClassLister: from, cachesErrors: true}
	c := &PreparedClaim{definitions: &ClaimDefinitions{}, classes: classes, reads: map[string]view.ReadSet{}, selectors: p.selectors.Load()}
	if err := v1alpha1.ClaimCarrier(claim).CheckTexts(); err != nil {
		c.definitions.ConstraintsErr, c.selectorsErr = err, err
		return c, nil
	}
	if constraints {
		c.prefers = v1alpha1.HasPreference(claim, classes.HasPreferences)
		var err error
		if c.definitions, err = CompileClaim(ctx, p.environment, claim, classes, c.prefers); err != nil {
			return nil, err
		}
		if err := c.definitions.analyze(ctx, claim); err != nil {
			return nil, err
		}
	}
	if content, ok := ClaimContent(classes, claim); ok {
		c.content = &content
	}
	for r := range requests.Each(claim) {
		ofClass := ""
		if class, err := classes.Get(r.Spec.DeviceClassName); err == nil {
			// Ignore an error in a class's selector here. It is reported when the selector is evaluated.
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

// addSelectors compiles the selectors of a class, or of a claim if judged is true. driver is the only driver whose devices they
// select, or "". wrong is an error in a selector. err means that the context ended.
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

// selector judges and compiles a selector, unless the selector set contains it already.
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

// evaluators is the estimated size of a compiled selector in relation to the size of the judge's program.
const evaluators = 2

func (p *Preparer) compileSelector(ctx context.Context, to *selectorSet, text selectorText) (outcome selectorOutcome, bytes int, err error) {
	if len(text.text) > resourceapi.CELSelectorExpressionMaxLength {
		// The API server rejects such a long selector, but it may have been written to etcd directly.
		outcome.err = fmt.Errorf("the expression is longer than %d bytes", resourceapi.CELSelectorExpressionMaxLength)
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
		// The judge found no bound of the cost. wrong keeps the selector from being evaluated.
		outcome.err = wrong
	}
	return outcome, bytes, nil
}

// Expressions returns the compiled expressions of the claim's constraints and preferences.
func (c *PreparedClaim) Expressions() []*device.Expression {
	var expressions []*device.Expression
	for _, d := range slices.Concat(c.definitions.Constraints, c.definitions.Preferences) {
		if d.Expression != nil {
			expressions = append(expressions, d.Expression)
		}
	}
	return expressions
}

// MayHave reports whether the claim can get devices of the driver, as far as its selectors show.
func (c *PreparedClaim) MayHave(driver string) bool {
	return len(c.drivers) == 0 || slices.ContainsFunc(c.drivers, func(of string) bool { return of == "" || of == driver })
}

// Err returns the error of the first selector of the claim that can't be used, or nil.
func (c *PreparedClaim) Err() error { return c.selectorsErr }

// Generation returns the number of the selector set that the claim was prepared with, see [Preparer.Generation].
func (c *PreparedClaim) Generation() uint64 { return c.selectors.number }

// Size returns the estimated size of the prepared claim without its selectors.
func (c *PreparedClaim) Size() memo.Size {
	size := memo.Size{Bytes: 512}
	for _, d := range slices.Concat(c.definitions.Constraints, c.definitions.Preferences) {
		size.Bytes += 512
		if d.Expression != nil {
			size.Parts = append(size.Parts, memo.Part{Of: *d.Expression, Bytes: d.Expression.Size()})
		}
	}
	for text := range c.reads {
		size.Bytes += 128 + len(text)
	}
	for _, err := range []error{c.definitions.ConstraintsErr, c.definitions.PreferencesErr, c.selectorsErr} {
		if err != nil {
			size.Bytes += 2 * len(err.Error())
		}
	}
	return size
}

// Prepared maps UIDs of claims to prepared claims.
type Prepared map[types.UID]*PreparedClaim

// of returns the prepared claim for a claim, or nil if the claim was not prepared.
func (p Prepared) of(claim *resourceapi.ResourceClaim) *PreparedClaim {
	if len(p) == 0 || claim.UID == "" {
		return nil
	}
	return p[claim.UID]
}

// SelectorsErr returns the error of the claim's selectors. If it is not nil, the selectors must not be evaluated.
func (p Prepared) SelectorsErr(claim *resourceapi.ResourceClaim) error {
	if c := p.of(claim); c != nil {
		return c.Err()
	}
	return nil
}

// Prefers reports whether a preference covers one of the claim's requests. known is false if the claim was not prepared.
func (p Prepared) Prefers(claim *resourceapi.ResourceClaim) (prefers, known bool) {
	c := p.of(claim)
	return c != nil && c.prefers, c != nil
}

// SelectorsOr returns the cache of compiled selectors of all prepared claims. If there are no prepared claims, it calls others.
func (p Prepared) SelectorsOr(others func() *dracel.Cache) *dracel.Cache {
	for _, c := range p {
		return c.selectors.Cache
	}
	return others()
}

// ReadByPrepared returns the attributes that a selector reads, if a prepared claim or one of its classes has this selector.
func ReadByPrepared(p Prepared, selector string) (view.ReadSet, bool) {
	for _, c := range p {
		if read, known := c.reads[selector]; known {
			return read, true
		}
	}
	return view.ReadSet{}, false
}

// PreparedDefinitions returns the definitions of a prepared claim, or nil if the claim was not prepared.
func PreparedDefinitions(p Prepared, claim *resourceapi.ResourceClaim) *ClaimDefinitions {
	if c := p.of(claim); c != nil {
		return c.definitions
	}
	return nil
}

// ContentOfClaim returns the content of a claim. If the claim was not prepared, the content is computed from the classes. ok is
// false if the content is missing.
func ContentOfClaim(p Prepared, classes v1alpha1.ClassGetter, claim *resourceapi.ResourceClaim) (fingerprint.Sum, bool) {
	if c := p.of(claim); c != nil {
		return c.Content()
	}
	return ClaimContent(classes, claim)
}
