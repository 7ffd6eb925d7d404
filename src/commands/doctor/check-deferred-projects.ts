// Reports projects whose events are deferred, from the state and the log, so no instance has to run.

import { openLogReader } from '#compose/log/log.ts'
import { openExistingManagement } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import { inDocs } from '#distribution.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { findProgress } from '#services/progress/find-progress.ts'
import { silentLogger } from '#telemetry/log.ts'
import { badFinding, type Finding, goodFinding, reasonOf, warningFinding } from './finding.ts'

const what = 'deferred projects'
const remedy = `nothing is lost or refused: their events take so long to process that they are processed separately, so that other projects need not wait; the lag includes them. If it lasts, check how large the persons of these projects are: each event is stored with all properties of its person${inDocs('operating/overload.md')}`

/** One finding for each stream that has any; none without a state that this version can read, which other checks report. */
export async function checkDeferredProjects(config: Config, nowMs: number): Promise<readonly Finding[]> {
  const opened = await openExistingManagement(config, silentLogger())
  if (!opened.ok) return []
  const management = opened.value
  const log = openLogReader(config, { isAsFound: true })
  try {
    const found: Finding[] = []
    for (const { stream } of await log.streams()) {
      const finding = await checkStream(stream, { management, log, nowMs })
      if (finding !== null) found.push(finding)
    }
    return found.length === 0 ? [goodFinding(what, 'none')] : found
  } finally {
    await Promise.all([log.close(), management.close()])
  }
}

async function checkStream(
  stream: LogStream,
  deps: { readonly management: ManagementStore; readonly log: Pick<EventLogReader, 'status'>; readonly nowMs: number },
): Promise<Finding | null> {
  const { management, log, nowMs } = deps
  const { offset, doneOffset, deferral } = await findProgress(management, stream)
  if (deferral === null) return null
  const names = deferral.projects.map(async ({ projectId }) => {
    const project = await management.findProject(projectId)
    return project === null
      ? `project ${projectId} (deleted)`
      : `project ${projectId} (${JSON.stringify(project.name)})`
  })
  const found = `${stream}: ${(await Promise.all(names)).join(', ')}; up to ${offset - doneOffset} records behind the other projects`
  try {
    const { appendedAtMs } = await log.status(stream, doneOffset)
    // A new log does not have these records any more.
    const age = appendedAtMs === null ? '' : `, the oldest ${Math.round((nowMs - appendedAtMs) / 1000)} s old`
    return warningFinding(what, found + age, remedy)
  } catch (cause) {
    return badFinding(
      what,
      `${found}; the log cannot be read (${reasonOf(cause)})`,
      'run doctor as the user that Pennon runs as',
    )
  }
}
