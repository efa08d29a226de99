// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cdi

import (
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

type attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute

func TestVariable(t *testing.T) {
	require.Equal(t, "CELSET_DEVICE_MLA_EXAMPLE_COM__MLA_12", Variable("mla.example.com", "mla-12", ""))
	seen := map[string]bool{}
	for _, driver := range []string{"mla.example.com", "mesh.example.com", "mla"} {
		for _, name := range []string{"mla-1/", "mla-11/", "example-com-mla-1/", "mla-1/1", "mla-1/uid-1"} {
			device, share, _ := strings.Cut(name, "/")
			variable := Variable(driver, device, types.UID(share))
			require.Regexp(t, "^[A-Z][A-Z0-9_]*$", variable, "what a shell can use")
			require.False(t, seen[variable], variable)
			seen[variable] = true
		}
	}
}

func TestValue(t *testing.T) {
	for name, test := range map[string]struct {
		device Device
		want   string
	}{
		"none": {Device{}, ""},
		"each type, by name": {Device{Attributes: attributes{
			"row": {IntValue: ptr.To[int64](-3)}, "col": {IntValue: ptr.To[int64](0)}, "on": {BoolValue: ptr.To(false)},
			"resource.kubernetes.io/pcieRoot": {StringValue: ptr.To("pci0000:10")}, "version": {VersionValue: ptr.To("1.2.3")},
		}}, " col=0 on=false resource.kubernetes.io/pcieRoot=pci0000:10 row=-3 version=1.2.3"},
		"lists": {Device{Attributes: attributes{
			"a": {IntValues: []int64{1, 2}}, "b": {BoolValues: []bool{true, false}}, "c": {StringValues: []string{"x", "y"}}, "d": {VersionValues: []string{"1.0.0"}},
		}}, " a=1,2 b=true,false c=x,y d=1.0.0"},
		"space, percent, nothing": {Device{Attributes: attributes{
			"a": {StringValue: ptr.To("H100 80GB\n100%20 ")}, "b": {StringValue: ptr.To("")},
		}}, " a=H100%2080GB%0A100%2520%20 b="},
		"a share, with capacities": {Device{
			Share: "1-2", Attributes: attributes{"memory": {StringValue: ptr.To("HBM3")}},
			Capacity: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("196592Mi"), "dra.cpu/cpu": resource.MustParse("4")},
		}, " share=1-2 memory=HBM3 capacity:dra.cpu/cpu=4 capacity:memory=196592Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			device := test.device
			device.Driver, device.Pool, device.Name = "d.test", "node", "d-0"
			value := device.Value()
			require.Equal(t, "driver=d.test pool=node device=d-0"+test.want, value)
			told, err := Parse(value)
			require.NoError(t, err)
			require.Equal(t, Parsed{
				Driver: "d.test", Pool: "node", Device: "d-0", Share: string(device.Share),
				Attributes: told.Attributes, Capacity: told.Capacity,
			}, told)
			require.Len(t, told.Attributes, len(device.Attributes))
			require.Len(t, told.Capacity, len(device.Capacity))
			for name, attribute := range device.Attributes {
				require.Equal(t, attributeValue(attribute), told.Attributes[string(name)])
			}
		})
	}
}

func TestParse(t *testing.T) {
	told, err := Parse("driver=d.test pool=node device=d-0 peers=d-1,d-2 sum=1+1=2")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(Parsed{
		Driver: "d.test", Pool: "node", Device: "d-0", Attributes: map[string]string{"peers": "d-1,d-2", "sum": "1+1=2"},
	}, told))
	for value, message := range map[string]string{
		"":                             `"" does not have the form key=value`,
		"driver=d.test pool":           `"pool" does not have the form key=value`,
		"driver=d.test  pool=node":     `"" does not have the form key=value`,
		"driver=d.test pool= device=d": "must have driver, pool and device",
		"driver=d.test text=%zz":       `"text=%zz": invalid URL escape "%zz"`,
		"driver=d.test index=1":        "must have driver, pool and device",
	} {
		_, err := Parse(value)
		require.ErrorContains(t, err, message)
	}
}

func TestDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "cdi")
	directory, err := NewDirectory(path, "d.test")
	require.NoError(t, err)
	other, err := NewDirectory(path, "other.test")
	require.NoError(t, err)

	devices := []Device{
		{Driver: "d.test", Pool: "node", Name: "d-0", Attributes: attributes{"index": {IntValue: ptr.To[int64](0)}}},
		{Driver: "d.test", Pool: "node", Name: "d-1"},
		{Driver: "d.test", Pool: "node", Name: "d-0", Attributes: attributes{"index": {IntValue: ptr.To[int64](0)}}},
	}
	for range 2 {
		ids, err := directory.Write("uid-1", devices)
		require.NoError(t, err)
		require.Equal(t, []string{"d.test/device=uid-1-d-0", "d.test/device=uid-1-d-1", "d.test/device=uid-1-d-0"}, ids)
	}
	content, err := os.ReadFile(filepath.Join(path, "d.test-device_uid-1.json"))
	require.NoError(t, err)
	require.Equal(t, `{
  "cdiVersion": "0.3.0",
  "kind": "d.test/device",
  "devices": [
    {
      "name": "uid-1-d-0",
      "containerEdits": {
        "env": [
          "CELSET_DEVICE_D_TEST__D_0=driver=d.test pool=node device=d-0 index=0"
        ]
      }
    },
    {
      "name": "uid-1-d-1",
      "containerEdits": {
        "env": [
          "CELSET_DEVICE_D_TEST__D_1=driver=d.test pool=node device=d-1"
        ]
      }
    }
  ],
  "containerEdits": {}
}`, string(content))

	shares := []Device{{Driver: "d.test", Pool: "node", Name: "d-0", Share: "1"}, {Driver: "d.test", Pool: "node", Name: "d-0", Share: "2"}}
	ids, err := directory.Write("uid-2", shares)
	require.NoError(t, err)
	require.Equal(t, []string{"d.test/device=uid-2-d-0-1", "d.test/device=uid-2-d-0-2"}, ids)
	require.NoError(t, directory.Remove("uid-2"))

	_, err = other.Write("uid-1", devices[:1])
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, directory.Remove("uid-1"))
		entries, err := os.ReadDir(path)
		require.NoError(t, err)
		require.Len(t, entries, 1, "those of other drivers stay")
	}
	require.FileExists(t, other.Path("uid-1"))
}

func TestNewDirectory(t *testing.T) {
	for driver, message := range map[string]string{
		"":       `driver name "": must begin with a letter`,
		"1.test": `driver name "1.test": must begin with a letter`,
	} {
		_, err := NewDirectory(t.TempDir(), driver)
		require.ErrorContains(t, err, message)
	}
	_, err := NewDirectory(filepath.Join(os.DevNull, "cdi"), "d.test")
	require.ErrorContains(t, err, "directory of CDI specs")
}

// TestMissingDirectory deletes the directory after NewDirectory. Write must create it again, because /var/run is empty after a
// reboot.
func TestMissingDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cdi")
	directory, err := NewDirectory(path, "d.test")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, directory.Remove("uid"))
	_, err = directory.Write("uid", nil)
	require.NoError(t, err)
	require.NoError(t, os.Remove(directory.Path("uid")))
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = directory.Write("uid", nil)
	require.ErrorContains(t, err, "CDI spec "+path+"/d.test-device_uid.json")
	require.ErrorContains(t, directory.Remove("uid"), "CDI spec")
}
