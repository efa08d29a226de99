// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/plugin/guard"
)

// configured is the guard of a scheduler whose profiles have these arguments, in this order.
func configured(t *testing.T, clock *clocktesting.FakePassiveClock, args ...string) (*guard.Guard, error) {
	t.Helper()
	shared := newProfiles(guard.New(clock), utilfeature.DefaultFeatureGate)
	return shared.guard, shared.configureAll(t, args...)
}

// configureAll makes the plugins of profiles with these arguments, in this order.
func (p *profiles) configureAll(t *testing.T, args ...string) error {
	t.Helper()
	ctx, h := newHandle(t)
	for i, raw := range args {
		h := &profileHandle{h, "profile-" + string(rune('a'+i))}
		if _, err := newPlugin(ctx, &runtime.Unknown{Raw: []byte(raw)}, h, features(), true, newMetrics(t), p); err != nil {
			return err
		}
	}
	return nil
}

type profileHandle struct {
	*handle
	name string
}

func (h *profileHandle) ProfileName() string { return h.name }

// TestLimitsOfTheWholeScheduler: whichever profile has them, in whatever order, the limits are
// for all.
func TestLimitsOfTheWholeScheduler(t *testing.T) {
	for name, test := range map[string]struct {
		profiles []string
		want     string
	}{
		"none has any":   {[]string{`{}`, `{"allocator":"Upstream"}`}, "more than 20 percent"},
		"the first has":  {[]string{`{"share":{"percent":30}}`, `{}`}, "more than 30 percent"},
		"the last has":   {[]string{`{"allocator":"Upstream"}`, `{"share":{"percent":30}}`}, "more than 30 percent"},
		"both have them": {[]string{`{"share":{"percent":30}}`, `{"share":{"percent":30,"burst":"150ms"}}`}, "more than 30 percent"},
		"each has one":   {[]string{`{"backOff":{"initial":"7s"}}`, `{"share":{"percent":30}}`}, "more than 30 percent"},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			g, err := configured(t, clock, test.profiles...)
			require.NoError(t, err)
			g.CycleBegan("default")
			clock.SetTime(clock.Now().Add(time.Minute))
			g.CycleEnded()
			g.Watch(queue{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "waits"}}})
			g.CycleBegan("default")
			_, refusal := g.Admit(guard.Request{Pod: pod(), Activate: func(*v1.Pod) {}})
			require.NotNil(t, refusal)
			require.Contains(t, refusal.Message, test.want)
		})
	}
}

// TestFragmentationInterval: where no profile uses our allocator nothing is counted.
func TestFragmentationInterval(t *testing.T) {
	for name, test := range map[string]struct {
		profiles []string
		want     time.Duration
	}{
		"none has it":            {[]string{`{"allocator":"Upstream"}`, `{}`}, 5 * time.Minute},
		"one has it":             {[]string{`{"allocator":"Upstream","fragmentationInterval":"1h"}`, `{}`}, time.Hour},
		"never":                  {[]string{`{}`, `{"fragmentationInterval":"0s"}`}, 0},
		"all leave it to others": {[]string{`{"allocator":"Upstream","fragmentationInterval":"1h"}`, `{"allocator":"Upstream"}`}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newShared()
			require.NoError(t, shared.configureAll(t, test.profiles...))
			require.Equal(t, test.want, shared.fragmentationInterval())
		})
	}
}

func TestProfilesMustAgree(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	_, err := configured(t, clock, `{"share":{"percent":30}}`, `{}`, `{"share":{"burst":"1s"}}`)
	require.EqualError(t, err, `DynamicResourcesCEL: profile profile-c has share {"percent":20,"burst":"1s"}, `+
		`and profile profile-a has {"percent":30,"burst":"150ms"}: it is for the whole scheduler, so set it in one profile, or the same in all`)
	_, err = configured(t, clock, `{"backOff":{"initial":"2s"}}`, `{"allocator":"Upstream","backOff":{}}`)
	require.ErrorContains(t, err, `profile profile-b has backOff {"initial":"1s","max":"5m0s"}, and profile profile-a has {"initial":"2s","max":"5m0s"}: `)
	_, err = configured(t, clock, `{"fragmentationInterval":"2s"}`, `{"fragmentationInterval":"1h"}`)
	require.ErrorContains(t, err, `profile profile-b has fragmentationInterval "1h0m0s", and profile profile-a has "2s": `)
}
