// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func newFile(t *testing.T) *File {
	t.Helper()
	file, err := New(filepath.Join(t.TempDir(), "plugins", "driver"))
	require.NoError(t, err)
	return file
}

func example() State {
	return State{}.With("uid-a", Claim{Namespace: "ns", Name: "a", Devices: []Device{
		{Request: "one", Pool: "node", Name: "d-0", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": {IntValue: ptr.To[int64](0)}, "text": {StringValue: ptr.To("<a & b>")}, "on": {BoolValue: ptr.To(true)},
			"list": {StringValues: []string{"x", "y"}},
		}},
		{Request: "two/sub", Pool: "node", Name: "d-1", Admin: true},
		{Request: "three", Pool: "node", Name: "d-2", Share: "uid-share", Capacity: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("80Gi")}},
	}})
}

func TestRoundTrip(t *testing.T) {
	file := newFile(t)
	state, err := file.Load()
	require.NoError(t, err, "a driver that never ran has no file")
	require.Empty(t, state.Claims)
	for _, state := range []State{example(), example().With("uid-b", Claim{}), {}} {
		require.NoError(t, file.Store(state))
		again, err := New(filepath.Dir(file.Path()))
		require.NoError(t, err)
		loaded, err := again.Load()
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(state, loaded))
	}
	entries, err := os.ReadDir(filepath.Dir(file.Path()))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left of how it was written")
}

// TestStatesDoNotShare checks that With and Without don't change the original state. The driver may still need it if the new
// state can't be stored.
func TestStatesDoNotShare(t *testing.T) {
	before := example()
	after := before.With("uid-b", Claim{Name: "b"}).Without("uid-a")
	require.Empty(t, cmp.Diff(example(), before))
	require.Equal(t, State{Claims: map[types.UID]Claim{"uid-b": {Name: "b"}}}, after)
	require.Equal(t, 2, before.Devices(), "administrators' access is not counted")
	require.Zero(t, State{}.Without("uid-a").Devices())
}

// TestLayoutMeansNothing checks that a file is valid if it has another layout, or fields that a later driver has added.
func TestLayoutMeansNothing(t *testing.T) {
	file := newFile(t)
	require.NoError(t, file.Store(example()))
	content, err := os.ReadFile(file.Path())
	require.NoError(t, err)
	var e envelope
	require.NoError(t, json.Unmarshal(content, &e))
	content, err = json.Marshal(e)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file.Path(), []byte(strings.Replace(string(content), "{", "{\n \"comment\": 1,", 1)), 0o600))
	state, err := file.Load()
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(example(), state))
}

func TestEveryDamageIsSeen(t *testing.T) {
	file := newFile(t)
	require.NoError(t, file.Store(example()))
	content, err := os.ReadFile(file.Path())
	require.NoError(t, err)
	damaged := func(t *testing.T, content string) {
		t.Helper()
		state, err := file.decode([]byte(content))
		if err == nil {
			require.Empty(t, cmp.Diff(example(), state), "read something else without an error:\n%s", content)
		}
	}
	for end := range len(content) - 1 {
		damaged(t, string(content[:end]))
	}
	for i := range content {
		damaged(t, string(content[:i])+"#"+string(content[i+1:]))
		damaged(t, string(content[:i])+string(content[i+1:]))
	}
}

func TestErrors(t *testing.T) {
	file := newFile(t)
	require.NoError(t, file.Store(example()))
	content, err := os.ReadFile(file.Path())
	require.NoError(t, err)
	stored := string(content)
	for name, test := range map[string]struct{ content, err string }{
		"empty":            {"", "is not JSON: unexpected end of JSON input"},
		"cut":              {stored[:len(stored)/2], "is not JSON"},
		"something else":   {"{}", "has no version"},
		"a changed device": {strings.Replace(stored, "d-0", "d-9", 1), "the checksum does not match the content"},
		"no state":         {`{"version": "v1", "checksum": ""}`, "the checksum does not match the content"},
		// The checksum is right, so only the type of the field is wrong.
		"another type": {`{"version": "v1", "checksum": "12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126", "state": ""}`, "cannot unmarshal string"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(file.Path(), []byte(test.content), 0o600))
			_, err := file.Load()
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.ErrorContains(t, err, "checkpoint "+file.Path()+": ")
			require.ErrorContains(t, err, test.err)
			require.ErrorContains(t, err, "(kubectl drain), delete the file, and restart the driver")
		})
	}
	t.Run("another version", func(t *testing.T) {
		require.NoError(t, os.WriteFile(file.Path(), []byte(strings.Replace(stored, `"v1"`, `"v2"`, 1)), 0o600))
		_, err := file.Load()
		var version *VersionError
		require.ErrorAs(t, err, &version)
		require.ErrorContains(t, err, `checkpoint `+file.Path()+`: version "v2" is not supported by this driver, which supports "v1"`)
	})
	t.Run("no file", func(t *testing.T) {
		require.NoError(t, os.Remove(file.Path()))
		require.NoError(t, os.Mkdir(file.Path(), 0o700))
		_, err := file.Load()
		require.ErrorContains(t, err, "is a directory")
		require.ErrorContains(t, file.Store(State{}), "checkpoint "+file.Path())
	})
	t.Run("no directory", func(t *testing.T) {
		_, err := New(filepath.Join(os.DevNull, "below"))
		require.ErrorContains(t, err, "directory of the checkpoint")
	})
}

// TestFormat checks that the format of the file does not change. Drivers must be able to read all files of the same format
// version.
func TestFormat(t *testing.T) {
	file := newFile(t)
	require.NoError(t, file.Store(State{}.With("uid-a", Claim{Namespace: "ns", Name: "a", Devices: []Device{{Request: "r", Pool: "p", Name: "d"}}})))
	content, err := os.ReadFile(file.Path())
	require.NoError(t, err)
	require.Equal(t, `{
  "version": "v1",
  "checksum": "376bf453f4a8ba4ce8c6fb0faadb4725a21499e8820d9f48c13d2ebf58cbec39",
  "state": {
    "claims": {
      "uid-a": {
        "namespace": "ns",
        "name": "a",
        "devices": [
          {
            "request": "r",
            "pool": "p",
            "name": "d"
          }
        ]
      }
    }
  }
}`, string(content))
}
