// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/cmd/kubectl-celset/convert"
)

type oneClass struct{ class *resourceapi.DeviceClass }

func (c oneClass) Get(string) (*resourceapi.DeviceClass, error) { return c.class, nil }

// TestDefaultsAreWrittenOut: in the KEP a class demands nothing, so the claim does.
func TestDefaultsAreWrittenOut(t *testing.T) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "d", "expression": "b", "default": true}`)},
	}}}}
	for version, request := range map[string]string{"v1": "{name: mla, exactly: {deviceClassName: x, count: 2}}", "v1beta1": "{name: mla, deviceClassName: x, count: 2}"} {
		o := object(t, `
apiVersion: resource.k8s.io/`+version+`
kind: ResourceClaim
metadata: {name: c, namespace: ns}
spec:
  devices:
    requests: [`+request+`]
    constraints: [{matchAttribute: celset.dev/a}]
    config:
    - opaque: {driver: celset.dev, parameters: {apiVersion: celset.dev/v1alpha1, kind: CELDeviceConstraint, name: a, expression: a}}
`)
		n, err := convert.ToKEP(t.Context(), o, oneClass{class})
		require.NoError(t, err)
		require.Equal(t, 2, n, version)
		devices := o.Object["spec"].(map[string]any)["devices"].(map[string]any)
		require.Equal(t, []any{
			map[string]any{"cel": map[string]any{"expression": "a"}},
			map[string]any{"cel": map[string]any{"expression": "b"}, "requests": []any{"mla"}},
		}, devices["constraints"], version)
	}
}
