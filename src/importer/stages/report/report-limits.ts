// Updates the report of a rehearsal after limits of the plan change, as long as they do not change the results.

import type { JobFolder } from '#importer/job/job-folder.ts'
import { hashMapping, type ImportPlan } from '#importer/job/plan.ts'
import { listPlanChoices } from './plan-choices.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { writeReport } from './report-files.ts'
import { readSamples } from './samples.ts'

/**
 * Rewrites the report if its limits differ from those of the plan.
 * @returns the current report.
 * @throws JobStopped if the samples, which are part of its page, are missing or damaged.
 */
export function updateReportLimits(folder: JobFolder, report: RehearsalReport, plan: ImportPlan): RehearsalReport {
  // With another mapping, the rehearsal is repeated anyway.
  if (report.hashes.mapping !== hashMapping(plan)) return report
  const { maxRejectShare } = plan.limits
  const choices = listPlanChoices(plan, report.targetAnswer)
  const isSame = report.maxRejectShare === maxRejectShare && JSON.stringify(report.choices) === JSON.stringify(choices)
  if (isSame) return report
  const updated = { ...report, maxRejectShare, choices }
  writeReport(folder, updated, readSamples(folder))
  return updated
}
