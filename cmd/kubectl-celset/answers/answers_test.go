// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cmd/kubectl-celset/answers"
	"github.com/celset/celset/internal/clusterstate"
)

// features has the features that the models of machines need.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, ListTypeAttributes: true,
	PartitionableDevices: true, PrioritizedList: true,
}

// ask asks a question, and decodes the answer as the page does.
func ask[A any](t *testing.T, a *answers.Answers, name string, question any) A {
	t.Helper()
	raw, err := json.Marshal(question)
	require.NoError(t, err)
	answer, err := a.Answer(t.Context(), name, raw)
	require.NoError(t, err)
	raw, err = json.Marshal(answer)
	require.NoError(t, err)
	var decoded A
	require.NoError(t, json.Unmarshal(raw, &decoded))
	return decoded
}

func empty() *answers.Answers {
	return answers.New(answers.Static(answers.View{Objects: &clusterstate.Objects{}, Origin: "playground", Revision: "1"}), answers.Options{Features: features})
}

// read returns an example of the documentation.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../manifests/examples/" + name)
	require.NoError(t, err)
	return string(text)
}

func TestTry(t *testing.T) {
	text := read(t, "trn1-2x2.yaml") + "---\n" + read(t, "deviceclasses.yaml")
	for _, inUse := range []int{0, 5} {
		answer := ask[answers.TryAnswer](t, empty(), answers.Try, answers.TryQuestion{Documents: text, Machine: "aws-trn1", Nodes: 2, InUse: inUse})
		raw, _ := json.MarshalIndent(answer, "", " ")
		t.Log(string(raw))
	}
}
