// Reports what the worker found missing in the event store. Reads it from the state, so no instance has to run.

import { openExistingManagement } from '#compose/stores/existing-state.ts'
import type { Config } from '#config.ts'
import { pennonCommand } from '#distribution.ts'
import { silentLogger } from '#telemetry/log.ts'
import { badFinding, type Finding, goodFinding } from './finding.ts'

const what = 'stored events'
const remedy = `stop the instance and restore a copy of the event store that has them, or acknowledge the loss: \`${pennonCommand('doctor --accept-missing-events')}\``

/** While rows were missing, the usage of these days kept its earlier figures. */
const accepted =
  'loss acknowledged; it will not be reported again. Usage of today and the two days before is recounted from the remaining rows, and may decrease'

/**
 * One finding for each missing span; none if this version cannot read the state, which other checks report.
 * @param acceptsMissing whether to record that nothing is missing any more.
 */
export async function checkStoredEvents(config: Config, acceptsMissing: boolean): Promise<readonly Finding[]> {
  const opened = await openExistingManagement(config, silentLogger())
  if (!opened.ok) return []
  const management = opened.value
  try {
    const mark = await management.findEventStoreMark()
    if (mark === null || mark.missing.length === 0) return [goodFinding(what, 'none are missing')]
    if (acceptsMissing) {
      await management.saveEventStoreMark({ ...mark, missing: [] })
      return [goodFinding(what, accepted)]
    }
    return mark.missing.map(({ table, oldestMs, newestMs }) =>
      badFinding(
        what,
        `${rowsOf[table] ?? table} from ${timeText(oldestMs)} to ${timeText(newestMs)} are missing`,
        remedy,
      ),
    )
  } finally {
    await management.close()
  }
}

const rowsOf: Readonly<Record<string, string>> = {
  events: 'events accepted',
  rejected_events: 'rejects received',
  replay_messages: 'recordings stored',
  deduplicated_flag_calls: 'counts of flag calls accepted',
}

function timeText(ms: number | null): string {
  return ms === null ? 'the beginning' : new Date(ms).toISOString()
}
