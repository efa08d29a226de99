// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import "k8s.io/apimachinery/pkg/api/resource"

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
