// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// A store holds claims and their devices. Like an API server, it applies one write after the other.
type store struct {
	version  uint64
	versions map[string]uint64
	devices  map[string][]string // by UID of the claim
}

func (s *store) owners() map[string]string {
	owners := map[string]string{}
	for uid, devices := range s.devices {
		for _, device := range devices {
			owners[device] = uid
		}
	}
	return owners
}

func (s *store) write(uid string, devices []string) (base, version uint64) {
	base = s.versions[uid]
	s.version++
	s.versions[uid], s.devices[uid] = s.version, devices
	return base, s.version
}

// drawHistory generates operations of three programs on four claims and three devices. Each operation takes effect between its
// start and its end. Some writes get no response; some of these take no effect.
func drawHistory(t *rapid.T) (*History, *store) {
	h, s := New(), &store{versions: map[string]uint64{}, devices: map[string][]string{}}
	now := time.Duration(0)
	for i := range rapid.IntRange(1, 30).Draw(t, "operations") {
		now += time.Duration(rapid.IntRange(1, 5).Draw(t, "later"))
		if uid := fmt.Sprint("claim-", rapid.IntRange(0, 9).Draw(t, "marked")); s.versions[uid] > 0 {
			// Another program marks the claim for deletion. The history does not record this write.
			s.write(uid, s.devices[uid])
		}
		before := time.Duration(rapid.IntRange(0, 8).Draw(t, "before"))
		after := time.Duration(rapid.IntRange(0, 8).Draw(t, "after"))
		o := &Operation{Program: fmt.Sprint(i % 3), Outcome: Applied, Start: max(0, now-before), End: now + after}
		h.operations = append(h.operations, o)
		if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
			o.Owners = s.owners()
			continue
		}
		o.UID = fmt.Sprint("claim-", rapid.IntRange(0, 3).Draw(t, "claim"))
		o.Claim = o.UID
		if owners := s.owners(); rapid.Bool().Draw(t, "allocate") {
			for d := range 3 {
				device := fmt.Sprint("device-", d)
				if (owners[device] == "" || owners[device] == o.UID) && rapid.Bool().Draw(t, device) {
					o.Devices = append(o.Devices, device)
				}
			}
		}
		switch rapid.IntRange(0, 15).Draw(t, "outcome") {
		case 0:
			o.Outcome, o.Base = Unknown, s.versions[o.UID]
		case 1:
			o.Outcome = Unknown
			o.Base, _ = s.write(o.UID, o.Devices)
		default:
			_, o.Version = s.write(o.UID, o.Devices)
		}
	}
	return h, s
}

// last returns a time after the end of the history.
func (h *History) last() time.Duration {
	last := time.Duration(0)
	for _, o := range h.operations {
		last = max(last, o.End)
	}
	return last + 1
}

func TestWhatHappenedIsAccepted(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		h, _ := drawHistory(t)
		require.NoError(t, h.Check(time.Minute).Err())
	})
}

// TestPlantedFaultsAreRefused appends an impossible operation to valid histories. Check must find it.
func TestPlantedFaultsAreRefused(t *testing.T) {
	planted := map[string]int{}
	cases.Until(t, cases.Of(50, 1000), func() bool { return len(planted) == 4 }, func(t *rapid.T) {
		h, s := drawHistory(t)
		// From here on, all writes get a response.
		at := h.last()
		for uid, devices := range s.devices {
			_, version := s.write(uid, devices)
			h.operations = append(h.operations, &Operation{Program: "0", UID: uid, Claim: uid, Devices: devices, Outcome: Applied, Version: version, Start: at, End: at})
		}
		h.operations = append(h.operations, &Operation{Program: "reader", Owners: s.owners(), Outcome: Applied, Start: at + 1, End: at + 1})
		owners := s.owners()
		if len(owners) == 0 {
			return
		}
		device := rapid.SampledFrom(sortedKeys(owners)).Draw(t, "device")
		wrong := &Operation{Program: "1", Outcome: Applied, Start: at + 2, End: at + 3}
		kind := rapid.SampledFrom([]string{"given twice", "write lost", "read of long ago", "owner of nothing"}).Draw(t, "fault")
		switch kind {
		case "given twice":
			wrong.UID, wrong.Claim, wrong.Devices, wrong.Version = "other", "other", []string{device}, s.version+1
		case "write lost":
			h.operations = append(h.operations, &Operation{Program: "2", UID: owners[device], Claim: owners[device], Outcome: Applied, Version: s.version + 1, Start: at + 2, End: at + 2})
			wrong.Owners, wrong.Start = owners, at+3
		case "read of long ago":
			wrong.Owners = map[string]string{}
		case "owner of nothing":
			wrong.Owners = map[string]string{device: owners[device] + ",other"}
		}
		h.operations = append(h.operations, wrong)
		verdict := h.Check(time.Minute)
		require.Contains(t, verdict.Refused, device, kind)
		require.ErrorContains(t, verdict.Err(), "device "+device+": no order of these explains")
		planted[kind]++
	})
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// TestUnknownWritesEnd checks that a write with unknown outcome explains only reads before the claim has a later version.
func TestUnknownWritesEnd(t *testing.T) {
	release := &Operation{UID: "a", Claim: "a", Outcome: Unknown, Base: 1, Start: 2, End: 3}
	other := &Operation{UID: "b", Claim: "b", Devices: []string{"d"}, Outcome: Applied, Version: 9, Start: 20, End: 21}
	h := New()
	h.operations = []*Operation{
		{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Applied, Version: 1, Start: 0, End: 1},
		release, other,
	}
	require.NoError(t, h.Check(time.Minute).Err(), "a may have given it back")
	h.operations = append(h.operations, &Operation{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Applied, Version: 5, Start: 10, End: 11})
	require.Equal(t, []string{"d"}, h.Check(time.Minute).Refused, "a has it at version 5, so the release from version 1 can't come")
}

// TestVersionsThatNobodyRecorded checks a write with unknown outcome that is based on a version from an unrecorded writer. The
// write may have been applied if the claim may have had that version.
func TestVersionsThatNobodyRecorded(t *testing.T) {
	h := New()
	h.operations = []*Operation{
		{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Applied, Version: 1, Start: 0, End: 1},
		{UID: "a", Claim: "a", Outcome: Unknown, Base: 3, Start: 2, End: 3},
		{Program: "reader", Owners: map[string]string{}, Outcome: Applied, Start: 4, End: 5},
	}
	require.NoError(t, h.Check(time.Minute).Err(), "it was marked for deletion, say")
	h.operations = append(h.operations, &Operation{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Applied, Version: 3, Start: 6, End: 7})
	require.Equal(t, []string{"d"}, h.Check(time.Minute).Refused, "version 3 came after it was read that nobody has it")
}

// TestLastVersion checks two responses that contain the previous version of a claim: to a write that changes nothing, and to
// the removal of the last finalizer.
func TestLastVersion(t *testing.T) {
	h := New()
	h.operations = []*Operation{
		{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Applied, Version: 1, Start: 0, End: 1},
		{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Unknown, Base: 1, Start: 2, End: 3},
		{UID: "a", Claim: "a", Outcome: Applied, Version: 5, Start: 10, End: 11},
		{UID: "a", Claim: "a", Outcome: Applied, Version: 5, Start: 12, End: 13},
		{UID: "a", Claim: "a", Outcome: Applied, Version: 5, Gone: true, Start: 14, End: 15},
		{UID: "b", Claim: "b", Devices: []string{"d"}, Outcome: Applied, Version: 9, Start: 20, End: 21},
	}
	require.NoError(t, h.Check(time.Minute).Err())
	h.operations = append(h.operations, &Operation{UID: "a", Claim: "a", Devices: []string{"d"}, Outcome: Applied, Version: 6, Start: 22, End: 23})
	require.Equal(t, []string{"d"}, h.Check(time.Minute).Refused, "it was gone, and b has it")
}

func TestStoredAndDrawn(t *testing.T) {
	h := New()
	h.operations = []*Operation{
		{Program: "x", Verb: "update resourceclaims/status", UID: "a", Claim: "ns/a", Devices: []string{"driver/pool/d"}, Outcome: Applied, Version: 1, Start: 0, End: time.Second},
		{Program: "y", Verb: "update resourceclaims/status", UID: "b", Claim: "ns/b", Devices: []string{"driver/pool/d"}, Outcome: Applied, Version: 2, Start: 2 * time.Second, End: 3 * time.Second},
	}
	var stored bytes.Buffer
	require.NoError(t, h.Store(&stored))
	var written []*Operation
	require.NoError(t, json.Unmarshal(stored.Bytes(), &written))
	require.Equal(t, h.operations, written)

	verdict := h.Check(time.Minute)
	require.EqualError(t, verdict.Err(), `device driver/pool/d: no order of these explains what they were told and what was read:
  0s to 1s: x: update resourceclaims/status ns/a with driver/pool/d (applied)
  2s to 3s: y: update resourceclaims/status ns/b with driver/pool/d (applied)`)
	dir := filepath.Join(t.TempDir(), "histories")
	require.NoError(t, verdict.Draw(dir))
	page, err := os.ReadFile(filepath.Join(dir, "driver_pool_d.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "ns/b has it (applied)")
}
