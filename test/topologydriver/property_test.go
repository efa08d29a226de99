// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topologydriver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

const (
	modelDevices = 5
	modelClaims  = 4
)

// A model is a driver, and the state that it must have. The expected state does not come from the driver's files.
type model struct {
	f *fixture
	d *Driver
	// allocated holds the current allocation of each claim. Some claims have the same device, as if a scheduler were faulty.
	allocated map[types.UID]*resourceapi.ResourceClaim
	// prepared holds the claims that the driver has prepared, with the allocation at the time of the preparation.
	prepared map[types.UID]*resourceapi.ResourceClaim
	// lost holds the prepared claims whose CDI spec was deleted.
	lost map[types.UID]bool
}

// TestRandomSequences makes random calls of the kubelet. Some claims have the same device. Between calls, drivers are killed
// and replaced, and CDI specs are deleted. The driver must always have the state of the model.
func TestRandomSequences(t *testing.T) {
	cases.CheckN(t, cases.Of(30, 300), func(t *rapid.T) {
		f := newFixture(t, ring(t, modelDevices))
		defer func() { require.NoError(t, os.RemoveAll(filepath.Dir(f.options.CDIDir))) }()
		m := &model{
			f: f, d: f.driver(t), allocated: map[types.UID]*resourceapi.ResourceClaim{},
			prepared: map[types.UID]*resourceapi.ResourceClaim{}, lost: map[types.UID]bool{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"allocate":         m.allocate,
			"prepare":          m.prepare,
			"unprepare":        m.unprepare,
			"restart":          func(t *rapid.T) { m.d = f.driver(t) },
			"reboot":           m.reboot,
			"killed preparing": m.killedPreparing,
			"killed removing":  m.killedRemoving,
			"":                 m.check,
		})
	})
}

func drawClaim(t *rapid.T) string {
	return fmt.Sprint("claim-", rapid.IntRange(0, modelClaims-1).Draw(t, "claim"))
}

// allocate changes the allocation of a claim. It may also change a prepared claim, because a kubelet that was down may have
// missed an earlier deallocation.
func (m *model) allocate(t *rapid.T) {
	numbers := rapid.SliceOfNDistinct(rapid.IntRange(0, modelDevices-1), 1, 3, rapid.ID[int]).Draw(t, "devices")
	var names []string
	for _, number := range numbers {
		names = append(names, fmt.Sprint("mla-", number))
	}
	claim := allocatedClaim(drawClaim(t), names...)
	admin := rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "admin")
	for i := range claim.Status.Allocation.Devices.Results {
		claim.Status.Allocation.Devices.Results[i].AdminAccess = ptr.To(admin)
	}
	m.allocated[claim.UID] = claim
}

// prepare makes the driver prepare an allocated claim, and checks the result.
func (m *model) prepare(t *rapid.T) {
	claim, ok := m.allocated[types.UID("uid-"+drawClaim(t))]
	if !ok {
		return
	}
	_, err := prepareOne(t, m.d, claim)
	earlier, again := m.prepared[claim.UID]
	switch {
	case again && devicesOfClaim(earlier) != devicesOfClaim(claim):
		require.ErrorContains(t, err, "so that the kubelet unprepares it")
	case !again && m.conflicts(claim):
		require.ErrorContains(t, err, "double allocation")
	default:
		require.NoError(t, err)
		m.prepared[claim.UID] = claim
		delete(m.lost, claim.UID)
	}
}

func (m *model) unprepare(t *rapid.T) {
	claim := allocatedClaim(drawClaim(t))
	require.NoError(t, unprepareOne(t, m.d, claim))
	delete(m.prepared, claim.UID)
	delete(m.lost, claim.UID)
}

// reboot deletes the CDI specs and starts a new driver. The checkpoint stays.
func (m *model) reboot(t *rapid.T) {
	require.NoError(t, os.RemoveAll(m.f.options.CDIDir))
	for uid := range m.prepared {
		m.lost[uid] = true
	}
	m.d = m.f.driver(t)
}

// killedPreparing creates the state after a driver was killed between writing the checkpoint and writing the CDI spec.
func (m *model) killedPreparing(t *rapid.T) {
	m.prepare(t)
	m.loseSpecOf(t, drawClaim(t))
}

// killedRemoving creates the state after a driver was killed between removing the CDI spec and writing the checkpoint.
func (m *model) killedRemoving(t *rapid.T) { m.loseSpecOf(t, drawClaim(t)) }

func (m *model) loseSpecOf(t *rapid.T, name string) {
	uid := types.UID("uid-" + name)
	if _, ok := m.prepared[uid]; ok {
		require.NoError(t, m.d.specs.Remove(uid))
		m.lost[uid] = true
	}
	m.d = m.f.driver(t)
}

// conflicts reports whether a device of the claim is prepared for another claim.
func (m *model) conflicts(claim *resourceapi.ResourceClaim) bool {
	taken := map[string]bool{}
	for _, other := range m.prepared {
		for _, result := range other.Status.Allocation.Devices.Results {
			taken[result.Device] = taken[result.Device] || !*result.AdminAccess
		}
	}
	return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return !*result.AdminAccess && taken[result.Device]
	})
}

func devicesOfClaim(claim *resourceapi.ResourceClaim) string {
	text := ""
	for _, result := range claim.Status.Allocation.Devices.Results {
		text += fmt.Sprint(result.Device, *result.AdminAccess, " ")
	}
	return text
}

// check checks the checkpoint and the CDI specs: they contain exactly the prepared claims, and no device is in two claims.
func (m *model) check(t *rapid.T) {
	state, err := m.f.driver(t).load()
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Collect(maps.Keys(m.prepared)), slices.Collect(maps.Keys(state.Claims)))
	held := map[string]types.UID{}
	for uid, claim := range state.Claims {
		for _, device := range claim.Devices {
			other, taken := held[device.Name]
			require.False(t, taken && !device.Admin, "%s is with %s and %s", device.Name, uid, other)
			if !device.Admin {
				held[device.Name] = uid
			}
		}
	}
	var specs []types.UID
	entries, err := os.ReadDir(m.f.options.CDIDir)
	require.NoError(t, err)
	for _, entry := range entries {
		_, uid, _ := strings.Cut(strings.TrimSuffix(entry.Name(), ".json"), "_")
		specs = append(specs, types.UID(uid))
		require.Len(t, m.f.environment(t, types.UID(uid)), len(state.Claims[types.UID(uid)].Devices))
	}
	for uid := range m.prepared {
		require.Equal(t, !m.lost[uid], slices.Contains(specs, uid), uid)
	}
	require.Len(t, specs, len(m.prepared)-len(m.lost))
}
