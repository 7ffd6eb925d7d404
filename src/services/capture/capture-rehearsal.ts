// A dry run of capture: reports the outcome of a request, given its project, its quotas and the instance's settings,
// without appending or counting anything.

import { createMetrics } from '#telemetry/metrics.ts'
import { type CaptureOptions, type CaptureService, createCaptureService } from './capture.ts'

/** Ignores hot ids: they do not decide whether events are stored, and checking an id would count it. */
export function createCaptureRehearsal(
  options: Omit<CaptureOptions, 'hotKeys' | 'refused' | 'eventLog' | 'metrics'>,
): Pick<CaptureService, 'capture'> {
  const { findProject, unknownKeys, importOnly, isOverQuota, visitors, clock, logger } = options
  return createCaptureService({
    ...{ findProject, unknownKeys, importOnly, isOverQuota, visitors, clock, logger },
    refused: { count: () => undefined },
    eventLog: { append: () => Promise.resolve() },
    metrics: createMetrics(),
  })
}
