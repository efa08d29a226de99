// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hold reserves devices for a pod while other pods are evicted for it. Until the victims have ended and the devices are
// free, no other pod of the same or a lower priority may get the devices. Otherwise the evictions would be in vain.
//
// A hold goes through these steps:
//
//  1. [Holds.Begin] begins a hold before the first pod is evicted.
//  2. A [Store] writes the hold into the pod's condition celset.dev/DevicesHeld, so that the next scheduler process can read it
//     ([Holds.Restore]). If the write fails, no pod is evicted.
//  3. The hold ends ([End]) when the pod is bound or deleted, when the hold times out, or when the pod can't get the devices
//     any more. A cleared or changed nomination does not end the hold, because kube-scheduler clears nominations for other
//     reasons.
//  4. The store sets the condition to False. The condition then has the number of tries and the time of the next one.
//
// Evictions for a pod are limited. Each hold of a pod is one try to get devices by evictions. If a hold ends without binding
// the pod, the next try waits for a back-off that doubles. After [MaxTries] tries, no more pods are evicted for the pod.
package hold
