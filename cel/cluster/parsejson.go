// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/json"
)

const parseJSONFunction = "parseJSON"

// parseJSON reads JSON as Kubernetes does: a number without fraction and exponent
// that fits is an int64, others are float64.
func parseJSON(argument ref.Val) ref.Val {
	text, ok := argument.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(argument)
	}
	var result any
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		return types.NewErr("parseJSON: the text is not JSON: %v", err)
	}
	return untypedValue(result)
}
