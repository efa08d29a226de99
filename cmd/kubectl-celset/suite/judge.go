// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/nearest"
)

// nothing describes an empty list.
const nothing = "none"

// judge compares the answer with the expectations. It returns an error if the case has a mistake.
func (e *Expectations) judge(ctx context.Context, a *answer) ([]Failure, error) {
	if err := e.applies(a); err != nil {
		return nil, err
	}
	j := &judgement{answer: a}
	if e.Devices != nil {
		j.devices("devices", e.Devices, a.devices)
	}
	for _, request := range slices.Sorted(maps.Keys(e.Requests)) {
		if len(e.Requests[request]) == 0 && !slices.Contains(a.requests, request) {
			j.fail("requests."+request, "a request", "there is no such request"+nearest.DidYouMean("", request, slices.Values(a.requests)))
			continue
		}
		j.devices("requests."+request, e.Requests[request], a.ofRequest(request))
	}
	if e.NodesThatFit != nil {
		j.list("nodesThatFit", e.NodesThatFit, a.fitting)
	}
	if e.Nodes != nil {
		j.list("nodes", e.Nodes, a.nodes)
	}
	if e.Clusters != nil {
		j.list("clusters", e.Clusters, a.clusters)
	}
	if e.None != "" {
		j.none(e.None)
	}
	if e.Steps != nil && a.steps > e.Steps.AtMost {
		j.fail("steps.atMost", strconv.FormatInt(e.Steps.AtMost, 10), strconv.FormatInt(a.steps, 10))
	}
	if e.Errors != nil {
		j.errors(e.Errors)
	}
	if e.Satisfies != "" {
		if err := j.satisfies(ctx, e.Satisfies); err != nil {
			return nil, err
		}
	}
	if len(j.failures) == 0 && len(a.reasons) > 0 && e.None == "" {
		// An empty list or a limit of steps is also true if, for example, the DeviceClass has a mistake in its name.
		j.fail("none", "a part of the reason, because nothing is chosen", oneLine(a.reasons[0]))
	}
	return j.failures, nil
}

// applies returns an error if an expectation does not apply to the kind of the subject.
func (e *Expectations) applies(a *answer) error {
	for _, one := range []struct {
		field string
		isSet bool
		of    kind
		use   string
	}{
		{"devices", e.Devices != nil, ofDevices, "claims and pods"},
		{"requests", e.Requests != nil, ofDevices, "claims and pods"},
		{"nodesThatFit", e.NodesThatFit != nil, ofDevices, "claims and pods"},
		{"steps", e.Steps != nil, ofDevices, "claims and pods"},
		{"nodes", e.Nodes != nil, ofGroup, "a PodGroup"},
		{"clusters", e.Clusters != nil, ofPlacement, "a Placement"},
	} {
		if one.isSet && one.of != a.of {
			return fmt.Errorf("expect.%s: applies only to %s, but the subject is %s: remove the field, or set subject", one.field, one.use, a.of)
		}
	}
	return nil
}

// judgement collects failures.
type judgement struct {
	*answer
	failures []Failure
	// hasReason is set if a failure has the reason why nothing is chosen. Further failures would repeat the reason.
	hasReason bool
}

func (j *judgement) fail(field, want, got string) {
	j.failures = append(j.failures, Failure{Field: "expect." + field, Want: want, Got: got})
}

// differs adds a failure with the chosen objects or, if nothing is chosen, with the reason.
func (j *judgement) differs(field, want string, chosen []string) {
	switch {
	case len(j.reasons) == 0:
		j.fail(field, want, listed(chosen))
	case !j.hasReason:
		j.hasReason = true
		j.fail(field, want, nothing+", because "+oneLine(j.reasons[0]))
	}
}

func listed(names []string) string {
	return cmp.Or(strings.Join(names, ", "), nothing)
}

// oneLine returns the text with single spaces between its words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// list requires that two lists have the same names, in any order.
func (j *judgement) list(field string, want, got []string) {
	if !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))) {
		j.differs(field, listed(want), got)
	}
}

// devices requires that each name matches a different device, and that each device has a name.
func (j *judgement) devices(field string, want []string, got []explain.Device) {
	left := slices.Clone(got)
	// Names with a driver come first, because they match fewer devices.
	specific := slices.SortedStableFunc(slices.Values(want), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, name := range specific {
		at := slices.IndexFunc(left, func(d explain.Device) bool { return isNamed(&d, name) })
		if at < 0 {
			j.differs(field, listed(want), names(got))
			return
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(left) > 0 {
		j.differs(field, listed(want), names(got))
	}
}

// ofRequest returns the devices of a request. For a request with alternatives, the name can also be "request/alternative".
func (a *answer) ofRequest(name string) (devices []explain.Device) {
	for _, d := range a.devices {
		request, _, _ := strings.Cut(d.Request, "/")
		if name == d.Request || name == request {
			devices = append(devices, d)
		}
	}
	return devices
}

func (j *judgement) none(want string) {
	if len(j.reasons) == 0 {
		j.fail("none", want, listed(j.chosen()))
		return
	}
	if !slices.ContainsFunc(slices.Concat(j.reasons, j.printed), func(reason string) bool { return strings.Contains(oneLine(reason), oneLine(want)) }) {
		j.fail("none", want, oneLine(strings.Join(j.reasons, "; ")))
	}
}

// errors requires that each text is a part of an error, and each error contains a text.
func (j *judgement) errors(want []string) {
	left := slices.Clone(j.answer.errors)
	for _, text := range want {
		at := slices.IndexFunc(left, func(message string) bool { return strings.Contains(oneLine(message), oneLine(text)) })
		if at < 0 {
			j.fail("errors", text, lines(j.answer.errors))
			continue
		}
		left = slices.Delete(left, at, at+1)
	}
	if len(left) > 0 && len(j.failures) == 0 {
		j.fail("errors", fmt.Sprintf("%d errors", len(want)), "also: "+lines(left))
	}
}

// lines returns a text with each message on one line.
func lines(messages []string) string {
	all := make([]string, len(messages))
	for i, message := range messages {
		all[i] = oneLine(message)
	}
	return cmp.Or(strings.Join(all, "; "), nothing)
}

func (j *judgement) satisfies(ctx context.Context, expression string) error {
	if j.answer.satisfies == nil {
		j.differs("satisfies", oneLine(expression), nil)
		return nil
	}
	if j.of != ofGroup && len(j.chosen()) == 0 {
		j.fail("satisfies", oneLine(expression), "nothing to evaluate the expression for: "+nothing+" chosen")
		return nil
	}
	ok, err := j.answer.satisfies(ctx, expression)
	switch _, wrong := errors.AsType[*expressionError](err); {
	case wrong || ctx.Err() != nil:
		return fmt.Errorf("expect.satisfies: %w", err)
	case err != nil && j.of == ofPlacement: // the error names the cluster
		j.fail("satisfies", oneLine(expression), oneLine(err.Error()))
	case err != nil:
		j.fail("satisfies", oneLine(expression), oneLine(err.Error())+", for "+listed(j.chosen()))
	case !ok:
		j.fail("satisfies", oneLine(expression), "false for "+listed(j.chosen()))
	}
	return nil
}
