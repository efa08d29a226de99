// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hold keeps devices for pods for which others are evicted. Until the victims have ended and the devices are
// free, no other pod of the same or a lower priority may get them, or the eviction was for nothing.
//
// A hold goes through these steps:
//
//  1. [Holds.Keep] begins a hold, before the first pod is evicted.
//  2. A [Store] writes it into the condition celset.dev/DevicesHeld of the pod, so that the next process can read it again
//     ([Read]). If that fails nothing is evicted.
//  3. The hold ends ([End]) when the pod is bound or gone, when its time is over, or when it became useless. A
//     nomination that is cleared or moved does not end it: kube-scheduler clears nominations for reasons of its own.
//  4. The store changes the condition to False. The condition then has the number of tries and the time of the next one.
//
// Evictions for a pod are bounded. After a hold that ended without a bound pod, the next try waits for a back-off that
// doubles. After [MaxTries] tries nothing is evicted for the pod any more.
package hold
