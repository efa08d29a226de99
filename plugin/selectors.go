// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/cel/device/costbound"
)

// selectorJudge says what is wrong with a selector.
type selectorJudge interface {
	Check(ctx context.Context, selector string) error
}

var (
	_ selectorJudge = (*costbound.Selectors)(nil)
	_ selectorJudge = (*onceJudge)(nil)
)

// onceJudge judges each selector once, for those who look at many claims of which most are alike.
type onceJudge struct {
	judge selectorJudge
	known map[string]error
}

// Check implements [selectorJudge].
func (j *onceJudge) Check(ctx context.Context, selector string) error {
	err, known := j.known[selector]
	if !known {
		err = j.judge.Check(ctx, selector)
		j.known[selector] = err
	}
	return err
}

// checkSelectors judges the device selectors of claims that are to be allocated, before any
// device is looked at: our allocator and upstream's both hand them to upstream's evaluator,
// which can't be stopped during a call. Those of DeviceClasses are the administrator's.
func checkSelectors(ctx context.Context, judge selectorJudge, claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		for i := range claim.Spec.Devices.Requests {
			request := &claim.Spec.Devices.Requests[i]
			if request.Exactly != nil {
				if err := checkRequest(ctx, judge, claim, request.Name, request.Exactly.Selectors); err != nil {
					return err
				}
			}
			for j := range request.FirstAvailable {
				if err := checkRequest(ctx, judge, claim, request.Name+"/"+request.FirstAvailable[j].Name, request.FirstAvailable[j].Selectors); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkRequest(ctx context.Context, judge selectorJudge, claim *resourceapi.ResourceClaim, request string, selectors []resourceapi.DeviceSelector) error {
	for i, selector := range selectors {
		if selector.CEL == nil {
			continue
		}
		if len(selector.CEL.Expression) > resourceapi.CELSelectorExpressionMaxLength {
			// The API server refuses it, whoever wrote it into its database.
			return fmt.Errorf("claim %s, request %s: selector #%d is longer than %d bytes",
				klog.KObj(claim), request, i, resourceapi.CELSelectorExpressionMaxLength)
		}
		if err := judge.Check(ctx, selector.CEL.Expression); err != nil {
			return fmt.Errorf("claim %s, request %s: selector #%d: %w", klog.KObj(claim), request, i, err)
		}
	}
	return nil
}
