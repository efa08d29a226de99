// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 defines DynamicResourcesCELArgs, the arguments of the scheduler plugin DynamicResourcesCEL in a
// KubeSchedulerConfiguration:
//
//	profiles:
//	- schedulerName: celset-scheduler
//	  pluginConfig:
//	  - name: DynamicResourcesCEL
//	    args:
//	      filterTimeout: 30s
//	      cacheSize: 512Mi
//	      budget: {cost: 20000000, steps: 400000}
//
// The scheduler decodes, defaults and validates the arguments of its in-tree plugins. Other plugins receive their arguments as
// the user wrote them. So this plugin calls [DecodeArgs], which decodes, defaults and validates.
// +groupName=config.celset.dev
package v1alpha1
