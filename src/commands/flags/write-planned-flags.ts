// Writes a planned import, one request after another. If one fails, the error lists the written definitions.

import { formatCount, truncateList } from '#core/format-count.ts'
import type { JsonObject } from '#core/json.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { buildFlagPath } from './find-flag.ts'
import {
  buildWriteBody,
  type FlagImportPlan,
  formatDefinitionTitle,
  hasFlagRules,
  type PlannedWrite,
} from './plan-import.ts'

/**
 * @param wrote called after each write, with the response.
 * @throws ClientError, also after a partial write.
 */
export async function writePlannedFlags(
  api: PrivateApi,
  plan: FlagImportPlan,
  wrote: (write: PlannedWrite, answer: JsonObject) => void,
): Promise<void> {
  for (const [index, write] of plan.writes.entries()) {
    let answer: JsonObject
    try {
      answer = await writeOne(api, write, plan)
    } catch (error) {
      throw error instanceof ClientError ? createStoppedError(error, plan.writes, index) : error
    }
    plan.ids.note(write.kind, write.name, answer.id)
    wrote(write, answer)
  }
}

async function writeOne(api: PrivateApi, write: PlannedWrite, { ids }: FlagImportPlan): Promise<JsonObject> {
  const body = buildWriteBody(write, ids)
  const query =
    write.kind === 'flag' && hasFlagRules(write) && body.filters !== undefined ? { skip_validation: 'true' } : {}
  const id = write.before?.id
  if (write.kind === 'cohort')
    return id === undefined ? api.post('/cohorts/', body) : api.patch(`/cohorts/${String(id)}/`, body)
  return id === undefined ? api.post('/feature_flags/', body, query) : api.patch(buildFlagPath(String(id)), body, query)
}

function createStoppedError(error: ClientError, writes: readonly PlannedWrite[], writtenCount: number): ClientError {
  const [failed, ...after] = writes.slice(writtenCount).map(formatDefinitionTitle)
  // A request that got no answer, or a 5xx, may nevertheless have been carried out.
  const isOpen = error.status === null || error.status >= 500
  const unwritten = isOpen ? after : [failed!, ...after]
  return new ClientError(
    `${failed}: ${error.message} Written so far: ${formatWriteCounts(writes.slice(0, writtenCount))}. ` +
      `${isOpen ? `It is unknown whether the ${failed} was written. ` : ''}` +
      `Not written: ${unwritten.length === 0 ? 'nothing' : truncateList(unwritten).join(', ')}. ` +
      'Run the command again to continue: unchanged objects are skipped.',
    { exitCode: error.exitCode, status: error.status },
  )
}

/** `3 flags and 1 cohort`. */
export function formatWriteCounts(writes: readonly PlannedWrite[]): string {
  const [flags, cohorts] = (['flag', 'cohort'] as const).map(kind => writes.filter(write => write.kind === kind).length)
  const parts = [
    ...(flags! > 0 ? [formatCount(flags!, 'flag')] : []),
    ...(cohorts! > 0 ? [formatCount(cohorts!, 'cohort')] : []),
  ]
  return parts.length === 0 ? 'nothing' : parts.join(' and ')
}
