// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hold reserves devices for pods that other pods are evicted for. Until the victims have ended and the devices are free,
// no other pod of the same or a lower priority may get the devices. Otherwise the eviction would be in vain.
//
// A hold goes through these steps:
//
//  1. [Holds.Begin] begins a hold before the first pod is evicted.
//  2. A [Store] writes the hold into the pod's condition celset.dev/DevicesHeld, so that the next process can read it
//     ([Holds.Restore]). If the write fails, no pod is evicted.
//  3. The hold ends ([End]) when the pod is bound or deleted, when its time is over, or when the hold is useless. A cleared or
//     changed nomination does not end it, because kube-scheduler clears nominations for other reasons.
//  4. The store sets the condition to False. The condition then has the number of tries and the time of the next one.
//
// Evictions for a pod are limited. Each hold of a pod is one try to get devices by evictions. After a hold that ends without
// binding the pod, the next try waits for a back-off that doubles. After [MaxTries] tries, no more pods are evicted for the
// pod.
package hold
