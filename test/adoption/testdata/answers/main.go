// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Program answers reads test cases of package allocator/conformance/scenario. For each case it writes a line of JSON with two
// answers: of celset's allocator, and of the allocator in Kubernetes' library. Its module requires the minor version of
// Kubernetes under test.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

// answer is the result of one allocator for a case.
type answer struct {
	Outcome string                         `json:"outcome"`
	Results []resourceapi.AllocationResult `json:"results,omitempty"`
	// Error is for people.
	Error string `json:"error,omitempty"`
}

var selectors = map[dracel.Features]*dracel.Cache{}

func main() {
	structured.EnableAllocators("incubating")
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c Case
		if err := in.Decode(&c); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(map[string]answer{"celset": ours(c.Clone()), "Kubernetes": theirs(c.Clone())}); err != nil {
			log.Fatal(err)
		}
	}
}

func selectorCache(c *Case) *dracel.Cache {
	features := dracel.Features{EnableConsumableCapacity: c.Features.ConsumableCapacity, EnableListTypeAttributes: c.Features.ListTypeAttributes}
	if selectors[features] == nil {
		selectors[features] = dracel.NewCache(1000, features)
	}
	return selectors[features]
}

func ours(c *Case) answer {
	a, err := allocator.NewAllocator(context.Background(), c.Features, c.State(), ClassLister(c.Classes), c.Slices, selectorCache(c))
	if err != nil {
		return answer{Outcome: "fatal", Error: err.Error()}
	}
	return answerOf(a.Allocate(context.Background(), c.Node, c.Claims))
}

func theirs(c *Case) answer {
	a, err := structured.NewAllocator(context.Background(), c.Features, c.State(), ClassLister(c.Classes), c.Slices, selectorCache(c))
	if err != nil {
		return answer{Outcome: "fatal", Error: err.Error()}
	}
	return answerOf(a.Allocate(context.Background(), c.Node, c.Claims))
}

func answerOf(results []resourceapi.AllocationResult, err error) answer {
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return answer{Outcome: "on-node", Error: err.Error()}
	case err != nil:
		return answer{Outcome: "fatal", Error: err.Error()}
	case results == nil:
		return answer{Outcome: "none"}
	}
	// Share IDs are random.
	for _, result := range results {
		for i := range result.Devices.Results {
			if d := &result.Devices.Results[i]; d.ShareID != nil {
				d.ShareID = ptr.To(types.UID("share"))
			}
		}
	}
	return answer{Outcome: "found", Results: results}
}
