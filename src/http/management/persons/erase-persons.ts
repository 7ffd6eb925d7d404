// Erases one or many persons and reports the progress.

import { omitUndefined } from '#core/omit-undefined.ts'
import type { ErasureTerms } from '#core/persons/erasure.ts'
import { erasePersons } from '#services/manage/erase-persons.ts'
import {
  bulkErasedSchema,
  bulkErasureSchema,
  deletionStatuses,
  deletionStatusSchema,
  encodeDeletionStatus,
} from '#wire/management/persons/erasures.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { answer, createInvalidInputError, createRequiredError, refusal } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerCountedList, encodeObjects } from '../kit/list-answers.ts'
import { asFilter } from '../kit/list-filters.ts'
import { findPersonById, noSuchPerson } from '../kit/person-filters.ts'
import { booleanParam, choiceParam, pageParams, uuidParam } from '../kit/query-params.ts'

/** An empty value is refused: PostHog treats it as true, while people would expect false. */
const switchParam = (description: string) => asFilter(booleanParam(description))

export function erasePersonsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'POST /persons/bulk_delete',
      id: 'persons_bulk_delete',
      summary: 'Erase persons by uuid or distinct id, optionally with their events and recordings.',
      scope: 'person:write',
      body: bulkErasureSchema,
      success: { status: 202, schema: bulkErasedSchema },
      handle: async ({ change, project, body }) => {
        const { ids, distinct_ids: distinctIds } = body
        if (ids === undefined && distinctIds === undefined) return refusal(createRequiredError('ids'))
        if (ids !== undefined && distinctIds !== undefined)
          return refusal(createInvalidInputError('distinct_ids', 'Send ids or distinct_ids, not both.'))
        const terms = readErasureTerms(body)
        if (terms === null) return refusal(keepsEverything)
        const persons =
          distinctIds === undefined ? { uuids: ids!.map(id => id.toLowerCase()) } : { distinctIds: [...distinctIds] }
        const found = await erasePersons(deps, { projectId: project.id, persons, ...terms }, change)
        const isErased = found.erasedCount > 0
        return answer(202, {
          persons_found: found.foundCount,
          persons_deleted: terms.keepsPerson ? 0 : found.erasedCount,
          events_queued_for_deletion: isErased && terms.deletesEvents,
          recordings_queued_for_deletion: isErased && terms.deletesRecordings,
          deletion_errors: [],
        })
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /persons/deletion_status',
      id: 'persons_deletion_status',
      summary: 'List erasures, newest first: who was erased, when, by which key, and whether any data remains.',
      scope: 'person:read',
      query: {
        ...pageParams(),
        person_uuid: uuidParam('Only this person.'),
        status: choiceParam(deletionStatuses, 'Default: `all`.'),
      },
      success: { status: 200, schema: countedPageSchema(deletionStatusSchema) },
      handle: call => {
        const { project, query } = call
        const { person_uuid: personUuid, status = 'all' } = query
        const isDone = status === 'all' ? undefined : status === 'completed'
        return answerCountedList(
          call,
          query,
          slice =>
            deps.management.listErasedPersons(project.id, { ...slice, ...omitUndefined({ personUuid, isDone }) }),
          encodeObjects(encodeDeletionStatus),
        )
      },
    }),
    ...projectRoutes(deps, {
      route: 'DELETE /persons/:uuid',
      id: 'persons_destroy',
      summary: 'Erase a person with its distinct ids and flag assignments, optionally with its events and recordings.',
      scope: 'person:write',
      query: {
        delete_events: switchParam("Also erase the person's events and rejected events."),
        delete_recordings: switchParam('Default: the value of `delete_events`.'),
        keep_person: switchParam('Erase only events and recordings.'),
      },
      success: { status: 202 },
      handle: async ({ change, project, params, query }) => {
        const terms = readErasureTerms(query)
        if (terms === null) return refusal(keepsEverything)
        const person = await findPersonById(deps.management, project.id, params.uuid!)
        if (person === null) return refusal(noSuchPerson)
        const persons = { uuids: [person.uuid] }
        const { erasedCount } = await erasePersons(deps, { projectId: project.id, persons, ...terms }, change)
        return erasedCount === 0 ? refusal(noSuchPerson) : { status: 202, json: null }
      },
    }),
  ]
}

const keepsEverything = createInvalidInputError(
  'keep_person',
  'Nothing to erase: set delete_events or delete_recordings.',
)

function readErasureTerms(asked: {
  readonly delete_events?: boolean | undefined
  readonly delete_recordings?: boolean | undefined
  readonly keep_person?: boolean | undefined
}): ErasureTerms | null {
  const deletesEvents = asked.delete_events === true
  const deletesRecordings = asked.delete_recordings ?? deletesEvents
  const keepsPerson = asked.keep_person === true
  return keepsPerson && !deletesEvents && !deletesRecordings ? null : { keepsPerson, deletesEvents, deletesRecordings }
}
