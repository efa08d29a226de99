// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/celset/celset/internal/testing/env"
)

// countingProfile is the one profile of a scheduler that counts sets as often as it may.
const countingProfile = "celset-counting"

// TestSetsOfDevicesAreCounted has two nodes of eight devices, and a claim that waits for all of one.
// Each single device that is allocated breaks a node; both on one node would break one.
func TestSetsOfDevicesAreCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t, "counted", 2)
	driver := l.Ring(t, 8).Drivers()[0]
	// Of all classes in the cluster those are shown that come first.
	class := "a." + driver
	index := "attributes['" + driver + "'].index / devices.size()"
	l.CreateNamedClass(t, class, driver, env.Definition("block", "devices.all(d, d."+index+" == devices[0]."+index+")"))
	l.CreateClaim(t, "waits", env.Request("mla", class, 8), env.Refer("block"))
	scheduler := startScheduler(t, countingProfile, celsetConfig(t, countingProfile, "{fragmentationInterval: 1s}"))
	requireSets := func(now, packed, idle float64) {
		t.Helper()
		want := fmt.Sprint("now ", now, ", packed ", packed, ", idle ", idle)
		env.Eventually(t, want, func(context.Context) (string, error) {
			_, values := scrape(t, scheduler)
			shape := class + " block 8"
			sets := func(state string) float64 { return values["celset_device_sets "+shape+" "+state] }
			got := fmt.Sprint("now ", sets("now"), ", packed ", sets("packed"), ", idle ", sets("idle"))
			if asked := values["celset_device_set_claims "+shape]; got != want || asked != 1 {
				return fmt.Sprintf("%s, asked by %v", got, asked), nil
			}
			return "", nil
		})
	}
	requireSets(2, 2, 2)

	for i, node := range l.Nodes {
		name := fmt.Sprint("single-", i)
		l.CreateClaim(t, name, env.Request("mla", driver, 1))
		l.CreatePodOn(t, node, name, countingProfile, name)
		l.RequireRunning(t, name)
	}
	requireSets(0, 1, 2)

	l.DeletePod(t, "single-0")
	requireSets(1, 1, 2)
}
