// Downloads of all persons that match the filters of the list.

import type { UnknownReason } from '#core/flags/evaluation/flag-outcome.ts'
import type { Result } from '#core/result.ts'
import { exportPersons, type PersonsToExport } from '#services/exports/export-persons.ts'
import { compilePersonTest } from '#services/scans/find-persons.ts'
import { type ExportedPersonRow, personColumns, personCursorOf, toPersonRow } from '#wire/exports/exported-columns.ts'
import { refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { readPersonCondition } from '../kit/person-conditions.ts'
import { noSuchPerson, personFilters, readPersonFilters } from '../kit/person-filters.ts'
import { wholeNumberParam } from '../kit/query-params.ts'
import { answerExport, exportParams, exportSuccess } from './answer-export.ts'

const scope = 'person:read'

export function exportPersonsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return projectRoutes(deps, {
    route: 'GET /persons/export',
    id: 'persons_export',
    summary: 'Download all matching persons, newest first. `cursor` resumes an interrupted export.',
    scope,
    group: 'exports',
    query: {
      ...personFilters,
      cursor: wholeNumberParam({ description: 'Resumes after the person with this cursor.', minimum: 1 }),
      ...exportParams,
    },
    success: exportSuccess,
    handle: async call => {
      const { caller, project, query, signal } = call
      if (query.uuid !== undefined && (await deps.management.findPersonByUuid(project.id, query.uuid)) === null)
        return refusal(noSuchPerson)
      const condition = await readPersonCondition(deps, caller, project, query)
      if (!condition.ok) return refusal(condition.error)
      const probe = condition.value
      const filters = readPersonFilters(query, probe)
      const test = probe === null ? null : compilePersonTest(probe, deps.scans, deps.clock.nowMs())
      const persons: PersonsToExport = {
        ...{ projectId: project.id, filters, belowId: query.cursor ?? null },
        staticCohortIds: probe?.staticCohortIds ?? [],
        holds: test === null ? () => true : async person => unwrapMatchResult(await test(person)),
      }
      return answerExport<ExportedPersonRow>(deps, call, {
        ...{ name: 'persons', scope, limit: query.limit, format: query.format },
        columns: personColumns,
        cursorOf: personCursorOf,
        open: async () => ({
          batches: encodeRows(exportPersons(deps.management, persons, signal)),
          rowCountMax: null,
        }),
      })
    },
  })
}

/**
 * Throws if the result is unknown, which cannot happen: the condition was checked before the export, so everything that it
 * needs is present.
 */
function unwrapMatchResult(holds: Result<boolean, UnknownReason>): boolean {
  if (!holds.ok) throw new Error(`the filters cannot be evaluated: ${holds.error}`)
  return holds.value
}

async function* encodeRows(batches: ReturnType<typeof exportPersons>): AsyncGenerator<readonly ExportedPersonRow[]> {
  for await (const batch of batches) yield batch.map(toPersonRow)
}
