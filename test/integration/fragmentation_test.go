// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/minor"
)

// countingProfile is the one profile of a scheduler that counts sets as often as it may.
const countingProfile = "celset-counting"

// TestSetsOfDevicesAreCounted has two nodes of eight devices, and a claim that waits for all of one.
// Each single device that is allocated breaks a node; both on one node would break one.
func TestSetsOfDevicesAreCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t, "counted", 2)
	driver := l.ring(t, 8).Drivers()[0]
	// Of all classes in the cluster those are shown that come first.
	class := "a." + driver
	index := "attributes['" + driver + "'].index / devices.size()"
	l.createNamedClass(t, class, driver, definition("block", "devices.all(d, d."+index+" == devices[0]."+index+")"))
	l.createClaim(t, "waits", request("mla", class, 8), refer("block"))
	scheduler, err := cluster.StartScheduler(t.Context(), controlplane.SchedulerOptions{
		Name:         countingProfile,
		Config:       configBeside(t, countingProfile, "{fragmentationInterval: 1s}"),
		User:         serviceAccount,
		FeatureGates: minor.SchedulerGates(map[string]bool{v1alpha1.FeatureGate: true}),
	})
	require.NoError(t, err)
	t.Cleanup(scheduler.Stop)
	requireSets := func(now, packed, idle float64) {
		t.Helper()
		want := fmt.Sprint("now ", now, ", packed ", packed, ", idle ", idle)
		eventually(t, want, func(context.Context) (string, error) {
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

	for i, node := range l.nodes {
		name := fmt.Sprint("single-", i)
		l.createClaim(t, name, request("mla", driver, 1))
		l.createPodOn(t, node, name, countingProfile, name)
		l.requireRunning(t, name)
	}
	requireSets(0, 1, 2)

	l.deletePod(t, "single-0")
	requireSets(1, 1, 2)
}
