// Keeps the report of a rehearsal true where limits of the plan change after it, which change nothing that was counted.

import type { JobFolder } from '#importer/job/job-folder.ts'
import { type ImportPlan, mappingSha256 } from '#importer/job/plan.ts'
import { planChoices } from './plan-choices.ts'
import type { RehearsalReport } from './rehearsal-report.ts'
import { writeReport } from './report-files.ts'
import { readSamples } from './samples.ts'

/**
 * Writes the report anew where it tells other limits than those of the plan.
 * @returns the report that holds.
 * @throws JobStopped when the samples, which are part of its page, are gone or damaged.
 */
export function withLimitsOf(folder: JobFolder, report: RehearsalReport, plan: ImportPlan): RehearsalReport {
  // One of another mapping is made anew.
  if (report.hashes.mapping !== mappingSha256(plan)) return report
  const { maxRejectShare } = plan.limits
  const choices = planChoices(plan, report.targetAnswer)
  const isSame = report.maxRejectShare === maxRejectShare && JSON.stringify(report.choices) === JSON.stringify(choices)
  if (isSame) return report
  const told = { ...report, maxRejectShare, choices }
  writeReport(folder, told, readSamples(folder))
  return told
}
