// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlcelset

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/machine"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-celset": func() { os.Exit(cli.Main()) }})
}

// TestScripts runs the scripts. A script finds in its directory the files of testdata/fragmented and of testdata/cluster. In
// testdata/cluster, node-1 has a ring of 8 devices, node-2 a mesh of 3x3, and node-3 a hybrid cube mesh of 8. node-4 in
// machine.yaml is an hgx-h100, see writeMachine. With UPDATE_SCRIPTS=1 in the environment, the test updates the expected output
// in the scripts.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			// The commands must not use the kubeconfig of the user who runs the test.
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
			env.Setenv("HOME", env.WorkDir)
			if err := writeMachine(filepath.Join(env.WorkDir, "machine.yaml")); err != nil {
				return err
			}
			for _, folder := range []string{"cluster", "fragmented"} {
				if err := os.CopyFS(filepath.Join(env.WorkDir, folder), os.DirFS(filepath.Join("testdata", folder))); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
	})
}

// exits implements a command of scripts: "exits 1 kubectl-celset check ..." runs a program and requires its exit code.
func exits(ts *testscript.TestScript, negated bool, args []string) {
	if negated || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT]...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failure, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Check(err)
		}
		got = failure.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	ts.Check(conforms(ts.ReadFile("stdout")))
}

// conforms validates structured output against the schema of its kind. Plain text and Kubernetes objects have no schema.
func conforms(stdout string) error {
	var document map[string]any
	if yaml.Unmarshal([]byte(stdout), &document) != nil || document["apiVersion"] != output.APIVersion {
		return nil
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "cmd", "kubectl-celset", "output", fmt.Sprint(document["kind"], ".yaml")))
	if err != nil {
		return err
	}
	schema := &spec.Schema{}
	if err := yaml.UnmarshalStrict(text, schema); err != nil {
		return err
	}
	result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(document)
	return result.AsError()
}

// TestSchemasRefuse checks that the schemas reject documents that the commands can't print.
func TestSchemasRefuse(t *testing.T) {
	for _, kind := range []string{output.CheckReport, output.Explanation, output.FragmentationReport, output.GroupExplanation, output.Picture, output.PlacementDecided, output.PlacementReport} {
		begin := "apiVersion: " + output.APIVersion + "\nkind: " + kind + "\n"
		require.ErrorContains(t, conforms(begin), "is required")
		require.ErrorContains(t, conforms(begin+"else: 1"), "else in body is a forbidden property")
	}
	require.Error(t, conforms("apiVersion: "+output.APIVersion+"\nkind: Other\n"))
}

// writeMachine writes the ResourceSlices of node-4, an hgx-h100, and a claim named finetune, as "kubectl get -o yaml" would.
// The claim has a GPU of node-4 and the network interface of the same rail.
func writeMachine(path string) error {
	m, err := machine.ByName("hgx-h100")
	if err != nil {
		return err
	}
	slices, err := m.ResourceSlices("node-4")
	if err != nil {
		return err
	}
	has := func(driver, device string) resourceapi.DeviceRequestAllocationResult {
		return resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: driver, Pool: "node-4", Device: device}
	}
	objects := []any{&resourceapi.ResourceClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "finetune"},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{has("gpu.nvidia.com", "gpu-5"), has("dra.net", "pci-0000-d4-00-0")},
		}}},
	}}
	for _, slice := range slices {
		objects = append(objects, slice)
	}
	var content bytes.Buffer
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		content.WriteString("---\n")
		content.Write(document)
	}
	return os.WriteFile(path, content.Bytes(), 0o600)
}
