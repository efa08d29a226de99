// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/redteam"
)

// TestPodsThatWaitCostNothing lets mallory create expensive claims with a pod each, and many pods that share one claim. All
// pods wait. The work for a waiting pod must not grow with the time that it waits. Alice's pods must be bound as fast as with
// the same number of harmless claims and pods, which have a selector that no device matches.
func TestPodsThatWaitCostNothing(t *testing.T) {
	heavy, light, rounds := 10, 60, 30
	if cases.Nightly() {
		heavy, light, rounds = 40, 400, 200
	}
	l := startLab(t)
	scheduler := l.scheduler()
	scheduler.run(t)
	alone, resting := l.siege(t, scheduler, rounds, func() {})
	besideTwin, ofTwin := l.siege(t, scheduler, rounds, func() {
		l.createWaiters(t, light, make([][]string, heavy))
	})
	l.clear(t)
	var texts [][]string
	for i := range heavy {
		texts = append(texts, heavyTexts(i))
	}
	beside, total := l.siege(t, scheduler, rounds, func() { l.createWaiters(t, light, texts) })
	all := heavy + light
	t.Logf("alice's pods alone: %s", written(alone))
	t.Logf("beside the twin: %s; %s", written(besideTwin), ofTwin.of(all))
	t.Logf("beside %d heavy and %d light pods: %s; %s", heavy, light, written(beside), total.of(all))
	require.LessOrEqual(t, total.refused, float64(2*all))
	require.LessOrEqual(t, total.failed, float64(3*all))
	require.LessOrEqual(t, total.patches, float64(3*all))
	require.LessOrEqual(t, total.events, float64(3*all))
	// client-go has a goroutine for each event that is not sent yet.
	require.LessOrEqual(t, total.goroutines, resting.goroutines+float64(3*all))
	if cases.Nightly() {
		require.Less(t, beside[len(beside)/2], besideTwin[len(besideTwin)/2]+time.Second)
		require.Less(t, beside[len(beside)-1], besideTwin[len(besideTwin)-1]+10*time.Second)
	}
	_, ended := scheduler.hasEnded()
	require.False(t, ended)
}

// createWaiters creates a claim and a pod for each list of constraints. It also creates sharing pods that all use one claim. No
// node has devices for the claims. A claim without constraints gets a selector that no device matches.
func (l *lab) createWaiters(t *testing.T, sharing int, constraints [][]string) {
	t.Helper()
	light := claim(unchecked, "light", 2, "devices.size() == 3")
	if constraints[0] == nil {
		light = unmatched("light")
	}
	objects := []client.Object{light}
	for i, texts := range constraints {
		name := fmt.Sprintf("heavy-%d", i)
		heavy := claim(unchecked, name, 8, texts...)
		if texts == nil {
			heavy = unmatched(name)
		}
		objects = append(objects, heavy, pod(unchecked, name, "celset-scheduler", name))
	}
	for i := range sharing {
		objects = append(objects, pod(unchecked, fmt.Sprintf("light-%d", i), "celset-scheduler", "light"))
	}
	l.create(t, objects...)
}

// unmatched returns a claim with a selector that no device matches.
func unmatched(name string) *resourceapi.ResourceClaim {
	c := claim(unchecked, name, 1)
	c.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{env.Selector("device.driver == 'none'")}
	return c
}

// heavyTexts returns constraints that no set satisfies. The search has to evaluate them for many sets.
func heavyTexts(number int) (texts []string) {
	search := slices.DeleteFunc(redteam.Cases(), func(c redteam.Case) bool { return !c.Is(redteam.Search) })
	for i := range 30 {
		texts = append(texts, fmt.Sprintf("(%s) || '%d' == ''", search[i%len(search)].Text, 30*number+i))
	}
	return texts
}
