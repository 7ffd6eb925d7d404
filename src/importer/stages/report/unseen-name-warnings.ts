// Warns of names in a mapping or configuration that occur in no record. Source: docs/wire/import.md §2.7.

import type { UnseenName } from '#importer/records/unseen-names.ts'
import type { Warning } from './rehearsal-report.ts'

/** A limit, since a mapping meant for other files would give a page of warnings. */
const shownMax = 50

export function warnOfUnseenNames(names: readonly UnseenName[]): readonly Warning[] {
  const shown = names.slice(0, shownMax).map(name => ({ code: codes[name.kind], text: describeUnseenName(name) }))
  const more = names.length - shown.length
  if (more === 0) return shown
  const text = `No record has ${more === 1 ? 'one more name' : `${more.toLocaleString('en')} more names`} of the mapping.`
  return [...shown, { code: codes.field, text }]
}

const codes = { field: 'field_of_no_record', event: 'event_of_no_record' } as const

function describeUnseenName({ kind, name, key, near, isOwn }: UnseenName): string {
  const meant = near === null ? '' : ` Did you mean ${JSON.stringify(near)}?`
  return kind === 'event'
    ? `${key} names the event ${JSON.stringify(name)}, which no record has.${meant}`
    : `The mapping names the field ${JSON.stringify(name)} under ${key}, but no record has it${isOwn ? ' as a separate field' : ''}.${meant}`
}
