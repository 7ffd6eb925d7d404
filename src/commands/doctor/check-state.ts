// Checks that read the state, so no instance has to run. If this version cannot read the state, they have no findings:
// other checks report that.

import { openLogReader } from '#compose/log/log.ts'
import { openExistingManagementStore } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import type { LogStream } from '#core/events/log-stream.ts'
import { formatCount } from '#core/format-count.ts'
import { dayMs } from '#core/time.ts'
import { clockSettleMs, isTimeTrusted, type TrustedTime, wasTimeEverTrusted } from '#core/trusted-time.ts'
import { inDocs, pennonCommand } from '#distribution.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { findStreamProgress } from '#services/progress/find-progress.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createBadFinding, createGoodFinding, createWarningFinding, type Finding, formatCause } from './finding.ts'

async function checkState(
  config: Config,
  check: (management: ManagementStore) => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const opened = await openExistingManagementStore(config, createSilentLogger())
  if (!opened.ok) return []
  try {
    return await check(opened.value)
  } finally {
    await opened.value.close()
  }
}

const missingRemedy = `stop the instance and restore a copy of the event store that has them, or acknowledge the loss: \`${pennonCommand('doctor --accept-missing-events')}\``

/** Usage is recounted, since it kept its earlier figures while rows of these days were missing. */
const accepted =
  'loss acknowledged; it will not be reported again. Usage of today and the two days before is recounted from the remaining rows, and may decrease'

/**
 * What the worker found missing in the event store: one finding for each span.
 * @param acceptsMissing whether to record that nothing is missing any more.
 */
export function checkStoredEvents(config: Config, acceptsMissing: boolean): Promise<readonly Finding[]> {
  const what = 'stored events'
  return checkState(config, async management => {
    const mark = await management.findEventStoreMark()
    if (mark === null || mark.missing.length === 0) return [createGoodFinding(what, 'none are missing')]
    if (acceptsMissing) {
      await management.saveEventStoreMark({ ...mark, missing: [] })
      return [createGoodFinding(what, accepted)]
    }
    return mark.missing.map(({ table, oldestMs, newestMs }) =>
      createBadFinding(
        what,
        `${rowsOf[table] ?? table} from ${formatTime(oldestMs)} to ${formatTime(newestMs)} are missing`,
        missingRemedy,
      ),
    )
  })
}

const rowsOf: Readonly<Record<string, string>> = {
  events: 'events accepted',
  rejected_events: 'rejects received',
  replay_messages: 'recordings stored',
  deduplicated_flag_calls: 'counts of flag calls accepted',
}

function formatTime(ms: number | null): string {
  return ms === null ? 'the beginning' : new Date(ms).toISOString()
}

const deferred = 'deferred projects'
const deferredRemedy = `nothing is lost or refused: their events take so long to process that they are processed separately, so that other projects need not wait; the lag includes them. If it lasts, check how large the persons of these projects are: each event is stored with all properties of its person${inDocs('operating/overload.md')}`

/** One finding for each stream with projects whose events are deferred. */
export function checkDeferredProjects(config: Config, nowMs: number): Promise<readonly Finding[]> {
  return checkState(config, async management => {
    const log = openLogReader(config, { isAsFound: true })
    try {
      const found: Finding[] = []
      for (const { stream } of await log.listStreams()) {
        const finding = await checkStream(stream, management, log, nowMs)
        if (finding !== null) found.push(finding)
      }
      return found.length === 0 ? [createGoodFinding(deferred, 'none')] : found
    } finally {
      await log.close()
    }
  })
}

async function checkStream(
  stream: LogStream,
  management: ManagementStore,
  log: Pick<EventLogReader, 'readStreamStatus'>,
  nowMs: number,
): Promise<Finding | null> {
  const { offset, doneOffset, deferral } = await findStreamProgress(management, stream)
  if (deferral === null) return null
  const names = deferral.projects.map(async ({ projectId }) => {
    const project = await management.findProject(projectId)
    return project === null
      ? `project ${projectId} (deleted)`
      : `project ${projectId} (${JSON.stringify(project.name)})`
  })
  const found = `${stream}: ${(await Promise.all(names)).join(', ')}; up to ${formatCount(offset - doneOffset, 'record')} behind the other projects`
  try {
    const { appendedAtMs } = await log.readStreamStatus(stream, doneOffset)
    // If the log was created anew, it does not contain these records, so their age is unknown.
    const age = appendedAtMs === null ? '' : `, the oldest ${Math.round((nowMs - appendedAtMs) / 1000)} s old`
    return createWarningFinding(deferred, found + age, deferredRemedy)
  } catch (cause) {
    return createBadFinding(
      deferred,
      `${found}; the log cannot be read (${formatCause(cause)})`,
      'run doctor as the user that Pennon runs as',
    )
  }
}

/** Whether old data is deleted, or kept because the clock of the machine moved. */
export function checkTrustedTime(config: Config): Promise<readonly Finding[]> {
  return checkState(config, async management => [toTrustedTimeFinding(await management.findTrustedTime())])
}

export function toTrustedTimeFinding(time: TrustedTime | null): Finding {
  const what = 'deletion by age'
  const ranHours = time === null ? '0' : (time.stoodMs / 3_600_000).toFixed(1)
  const confirmed = `by running for a day (so far ${ranHours} of ${clockSettleMs / 3_600_000} h)`
  if (time === null || !wasTimeEverTrusted(time))
    return createGoodFinding(
      what,
      `nothing is deleted by age yet: deletion starts once a worker has confirmed the clock ${confirmed}`,
    )
  if (isTimeTrusted(time))
    return createGoodFinding(what, `uses the system clock, as of ${new Date(time.atMs).toISOString()}`)
  const days = Math.abs(time.aheadMs / dayMs).toFixed(1)
  return createWarningFinding(
    what,
    `the clock is ${days} days ${time.aheadMs > 0 ? 'ahead of' : 'behind'} the expected time: deletion by age uses ${new Date(time.atMs).toISOString()}`,
    `if the clock is wrong, set it. Otherwise nothing to do: after a stop of that length, or a correction of the clock, it is trusted again once a worker has confirmed it ${confirmed}`,
  )
}
