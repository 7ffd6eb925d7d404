// Capture that leaves nothing behind: says what would become of a request, given its project, its quotas and the instance's
// settings, without appending or counting anything.

import { createMetrics } from '#telemetry/metrics.ts'
import { type CaptureDependencies, type CaptureService, createCaptureService } from './capture.ts'

/** Hot ids are not looked for: whether one is hot says nothing of whether its events are stored, and looking counts. */
export function createCaptureRehearsal(
  dependencies: Omit<CaptureDependencies, 'hotKeys' | 'refused' | 'eventLog' | 'metrics'>,
): Pick<CaptureService, 'capturePrepared'> {
  const { findProject, unknownKeys, importOnly, isOverQuota, clock, logger } = dependencies
  const nothing = () => Promise.resolve()
  return createCaptureService({
    ...{ findProject, unknownKeys, importOnly, isOverQuota, clock, logger },
    refused: { count: () => undefined },
    eventLog: { append: nothing, close: nothing },
    metrics: createMetrics(),
  })
}
