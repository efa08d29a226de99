// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel/cluster"
)

// Time must not decide who is selected: a machine that is busy would deselect what an
// idle one selects. So what is not evaluated in time is neither selected nor not
// selected, and the former decision stands. What was evaluated is remembered, and the
// next attempt goes on from there.

// Overrun says that the evaluations took longer than they may.
type Overrun struct {
	// Limit is the one that was exceeded: that of one evaluation, or of all together.
	Limit *Deadline
	// Evaluations tells that single evaluations took too long. They will do so again, so
	// no attempt gets further than they do.
	Evaluations bool
	// Late are the clusters that were being evaluated when that was found, with the
	// reason [*Late].
	Late []Removal
	// Pending is how many of the available clusters are not evaluated.
	Pending int
}

// maxLate is after how many evaluations that take too long no more are begun. The
// condition names as many.
const maxLate = named

// Late is the reason of a cluster that was not evaluated in time.
type Late struct {
	// Expression leads to the one that was being evaluated; nil if none was begun.
	Expression *field.Path
	// Limit is the one that was exceeded, Alone whether by this evaluation alone.
	Limit time.Duration
	Alone bool
}

func (*Late) reason() {}

// String names the expression.
func (l *Late) String() string {
	switch {
	case l.Expression == nil:
		return "is not evaluated yet"
	case l.Alone:
		return fmt.Sprintf("can't be evaluated in time: %s takes longer than %s", l.Expression, l.Limit)
	default:
		return fmt.Sprintf("is not evaluated yet: %s was not done when %s for all clusters were over", l.Expression, l.Limit)
	}
}

// hurries tells whether no evaluation is to be begun any more: there is no time left, or
// it is known already that it does not suffice.
func (r *run) hurries() bool {
	if o := r.result.Overrun; o != nil && (!o.Evaluations || len(o.Late) >= maxLate) {
		return true
	}
	if limit := deadlineIn(r.cause()); limit != nil {
		r.overran(limit)
		return true
	}
	return false
}

// begun is when the first of several attempts at a decision was made, zero if the last one has
// succeeded. All of them have the same now(): if it went on between them, answers that hold for a
// tick only would have to be found again and again, and never be there for all clusters.
type begun struct{ time.Time }

// longestDecision is after how long the time goes on all the same.
const longestDecision = time.Minute

// orNow is the time of an attempt.
func (b begun) orNow(now time.Time) time.Time {
	if since := now.Sub(b.Time); b.IsZero() || since < 0 || since >= longestDecision {
		return now
	}
	return b.Time
}

// overran notes that a limit is exceeded. That of single evaluations says more than that
// of all.
func (r *run) overran(limit *Deadline) *Overrun {
	if r.result.Overrun == nil {
		r.result.Overrun = &Overrun{Limit: limit}
	}
	return r.result.Overrun
}

// late is the verdict on a cluster that was not evaluated in time: it is evaluated next time. failure is nil if
// nothing was begun.
func (r *run) late(of *clusterv1.ManagedCluster, failure error) *verdict {
	reason := &Late{}
	if failure == nil {
		r.skipped++
	} else {
		r.tooLong(of.Name, failure, reason)
	}
	r.result.Overrun.Pending++
	return &verdict{fleeting: true, match: match{predicate: -1, reason: reason}}
}

// tooLong notes that an evaluation was ended, and by what.
func (r *run) tooLong(name string, failure error, reason *Late) {
	limit := deadlineIn(failure)
	overrun := r.overran(limit)
	overrun.Late = append(overrun.Late, Removal{name, reason})
	// Another Deadline than that of the run is that of the evaluation, though the run may
	// have none left either by now.
	reason.Limit, reason.Alone = limit.Limit, limit != deadlineIn(r.cause())
	if reason.Alone {
		overrun.Limit, overrun.Evaluations = limit, true
	}
	if at := (*cluster.Error)(nil); errors.As(failure, &at) {
		reason.Expression = at.Path
	}
}

// overrun sets the conditions where evaluations took too long.
func (r *report) overrun() {
	r.condition(wellknown.ConditionEvaluationFailed, metav1.ConditionTrue, wellknown.ReasonEvaluationFailed,
		r.result.Overrun.message(r.result.standing(), len(r.result.Available.Clusters)))
	r.satisfied(metav1.ConditionFalse, wellknown.ReasonNotScheduled, "The evaluation takes too long; "+r.result.standing())
}

// message says what took too long, and what to do.
func (o *Overrun) message(standing string, available int) string {
	var texts []string
	if o.Evaluations {
		texts = append(texts, fmt.Sprintf("The evaluation takes longer than %s on a cluster; %s. Write a cheaper expression, or put what is cheap and rules out much before it:", o.Limit.Limit, standing))
	} else {
		texts = append(texts, fmt.Sprintf("The evaluation takes longer than %s on all clusters together; %s. It goes on after a while; write cheaper expressions, or put what is cheap and rules out much before them:", o.Limit.Limit, standing))
	}
	for _, removal := range o.Late {
		texts = append(texts, removal.Cluster+" "+removal.Reason.String())
	}
	texts = append(texts, fmt.Sprintf("%d of %d clusters are evaluated", available-o.Pending, available))
	return strings.Join(texts, "\n")
}

const (
	// DefaultEvaluationTimeout is how long the expressions of one predicate may take on
	// one cluster. It is for what a limit on cost does not foresee. Most take some
	// microseconds, a usual one that costs all that it may about 50 milliseconds of one
	// core; cost alone would allow a quarter of a second.
	DefaultEvaluationTimeout = 100 * time.Millisecond
	// DefaultTimeout is how long all evaluations of one decision may take. Those of a
	// usual Placement on thousands of clusters take milliseconds; regular expressions on
	// ten thousand take half a second, and three times that on a machine that is busy.
	DefaultTimeout = 5 * time.Second
)

// Deadline is the cause of a context that ends because something takes too long, and
// not because the program does. Where it ends evaluations, that is no error of
// [Scheduler.Schedule] but an [Overrun].
type Deadline struct {
	// Limit is how long it may take.
	Limit time.Duration
}

// Error names the limit.
func (d *Deadline) Error() string { return fmt.Sprintf("it takes longer than %s", d.Limit) }

// WithDeadline returns a context that ends after a while because of a limit, which is
// longer where this is only a part of what is limited.
func WithDeadline(ctx context.Context, after, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.WithValue(ctx, undeadlined{}, ctx), after, &Deadline{limit})
}

type undeadlined struct{}

// withoutDeadline returns the context that [WithDeadline] was given: compiling is no evaluation.
func withoutDeadline(ctx context.Context) context.Context {
	if parent, ok := ctx.Value(undeadlined{}).(context.Context); ok {
		return parent
	}
	return ctx
}

// deadlineIn finds the Deadline that an error comes from, nil if there is none.
func deadlineIn(err error) *Deadline {
	if err == nil {
		return nil
	}
	var result *Deadline
	if errors.As(err, &result) {
		return result
	}
	return nil
}

// alarm gives evaluations that come one after another a context that ends when one
// takes too long. Most don't: they share a context and a timer, since to make both for
// each would cost as much as a short evaluation.
type alarm struct {
	parent context.Context
	// limit is for each of them; zero is none.
	limit time.Duration

	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// start returns the context of the next evaluation.
func (a *alarm) start() context.Context {
	switch {
	case a.limit <= 0:
		return a.parent
	case a.ctx != nil:
		a.timer.Reset(a.limit)
	default:
		ctx, cancel := context.WithCancelCause(a.parent)
		a.ctx, a.cancel = ctx, cancel
		a.timer = time.AfterFunc(a.limit, func() { cancel(&Deadline{a.limit}) })
	}
	return a.ctx
}

// stop ends an evaluation. What the timer has ended, or is about to, is not used again.
func (a *alarm) stop() {
	if a.ctx != nil && !a.timer.Stop() {
		a.close()
	}
}

// close frees the context. There may be further evaluations all the same.
func (a *alarm) close() {
	if a.ctx != nil {
		a.timer.Stop()
		a.cancel(nil)
		a.ctx = nil
	}
}
