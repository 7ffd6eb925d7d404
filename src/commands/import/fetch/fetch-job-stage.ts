// Stage 1 of a planned job: completes what `pennon import fetch` began, and adds the files to the plan.

import { openFetchSource } from '#compose/import/open-fetch-source.ts'
import { fetchForJob } from '#importer/fetch/fetch-for-job.ts'
import { readFetchedParts } from '#importer/fetch/fetched-parts.ts'
import { writePlan } from '#importer/job/plan.ts'
import { tryFileLock } from '#processes/data-lock.ts'
import type { JobStage } from '../job/job-stages.ts'
import { clock } from './fetch.ts'

export const fetchJob: JobStage = {
  name: 'fetch',
  isDone: ({ folder, plan }) =>
    plan.fetch === null || (plan.files.length > 0 && readFetchedParts(folder.path)?.isComplete === true),
  async run({ folder, plan, progress, signal, findSpaceProblem }) {
    const files = await fetchForJob({
      ...{ folder, clock, tryFileLock, progress, signal, findSpaceProblem },
      fetch: plan.fetch!,
      open: config => openFetchSource(config, process.env, clock.nowMs),
    })
    writePlan(folder, { ...plan, files })
  },
}
