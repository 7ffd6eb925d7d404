// Records of any shape, with a mapping that names the fields of each part of an event. Also the base of sources that ship
// with a mapping. Source: docs/wire/import.md §1.9.

import { parseUuid } from '#core/events/uuid.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { inDocs } from '#distribution.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid, hashCanonicalContent } from '#importer/records/deterministic-uuid.ts'
import { checkIdLength, toEventIdText, toIdText, toLegalId } from '#importer/records/distinct-ids.ts'
import { createIdentityLinks } from '#importer/records/generated-events.ts'
import {
  ImportConfigError,
  type ImportSource,
  type RecordConverter,
  type SourceContext,
  type SourceRecord,
} from '#importer/records/import-source.ts'
import {
  type Conversion,
  createSkippedOutcome,
  type RecordNote,
  RecordReject,
} from '#importer/records/imported-event.ts'
import {
  isEmptyValue,
  putPersonUpdates,
  putProperties,
  putProperty,
  readEventName,
} from '#importer/records/record-fields.ts'
import type { SourceConfig } from '#importer/records/source-config.ts'
import { type EpochUnit, isZoneName, readRecordTime, type TimeWindow } from '#importer/records/source-time.ts'
import {
  createFieldSelector,
  renameFields,
  selectFields,
  TypedFields,
} from '#importer/sources/generic/mappings/field-selection.ts'
import type { TypeForm } from '#importer/sources/generic/mappings/field-types.ts'
import { checkMapping, type Mapping, type RenamedEvent } from '#importer/sources/generic/mappings/mapping-schema.ts'
import { trackMappingUse } from '#importer/sources/generic/mappings/mapping-watch.ts'
import pendoMapping from '#importer/sources/generic/mappings/pendo.json' with { type: 'json' }
import { createRecordFilter } from '#importer/sources/generic/mappings/record-filters.ts'
import statsigMapping from '#importer/sources/generic/mappings/statsig.json' with { type: 'json' }

export const generic = defineSource(
  'generic',
  'JSONL, CSV, Parquet or Avro of any shape, with a mapping file',
  (config, context) => {
    const mapping = config.object('mapping')
    if (mapping === null)
      throw new ImportConfigError(
        `the source generic needs a mapping, which names the fields that hold event, distinct_id and timestamp: pass --mapping FILE, in JSON${inDocs('import-mapping.md')}`,
      )
    const checked = checkMapping(mapping)
    const watch = context.unseenNames === undefined ? undefined : trackMappingUse(checked, context.unseenNames)
    return createConverter('generic', checked, config, context, watch)
  },
)

/** Pendo: events in the `allevents` Avro files of its Data Sync. Source: docs/wire/import.md §1.10. */
export const pendo = createMappedSource('pendo', 'Pendo Data Sync (Avro, allevents)', pendoMapping)
/** Statsig: events, not gates and experiments. Source: docs/wire/import.md §1.10. */
export const statsig = createMappedSource('statsig', 'events of Statsig (JSON)', statsigMapping)

/** A source whose mapping ships with Pennon. Its unseen names are not reported, since not all exports have every field. */
function createMappedSource(name: string, summary: string, mapping: JsonObject): ImportSource {
  const checked = checkMapping(mapping)
  return defineSource(name, summary, (config, context) => createConverter(name, checked, config, context))
}

interface Conversions {
  readonly source: string
  readonly mapping: Mapping
  readonly form: TypeForm
  readonly window: TimeWindow
  /** Whether identical records without an id are separate events. */
  readonly keepsIdentical: boolean
  readonly isWanted: (record: JsonObject) => boolean
  readonly selector: ReturnType<typeof createFieldSelector>
  /** Notes which names in the mapping the record has. */
  readonly watch: ((record: JsonObject) => void) | undefined
}

function createConverter(
  source: string,
  mapping: Mapping,
  config: SourceConfig,
  context: SourceContext,
  watch?: Conversions['watch'],
): RecordConverter {
  const unit = config.text('unit') ?? mapping.unit
  if (unit !== undefined && !['s', 'ms', 'us', 'ns'].includes(unit))
    throw new ImportConfigError(`unit in the configuration of ${source} must be s, ms, us or ns`)
  const zone = config.zone() ?? mapping.source_timezone ?? null
  if (zone !== null && !isZoneName(zone))
    throw new ImportConfigError(
      `source_timezone in the mapping must be an IANA zone such as Europe/Berlin, not ${zone}`,
    )
  const conversions: Conversions = {
    source,
    mapping,
    form: {
      zone,
      ...(unit !== undefined && { unit: unit as EpochUnit }),
      ...(mapping.date_order !== undefined && { dateOrder: mapping.date_order }),
      hasDecimalComma: mapping.decimal_separator === ',',
    },
    window: context,
    keepsIdentical: config.flag('keep_identical'),
    isWanted: createRecordFilter(mapping.filters),
    selector: createFieldSelector(mapping),
    watch,
  }
  return {
    convert: record => convert(record, conversions),
    timeOf: ({ value }) => readMappedTime(new TypedFields(value, mapping, conversions.form, []), conversions),
  }
}

function convert(record: SourceRecord, conversions: Conversions): Conversion {
  const { mapping, form, watch } = conversions
  watch?.(record.value)
  if (!conversions.isWanted(record.value)) return createSkippedOutcome('filtered')
  const notes: RecordNote[] = []
  const fields = new TypedFields(record.value, mapping, form, notes)
  const name = readName(fields, mapping)
  const target = findTarget(name, mapping)
  if ('skip' in target) return createSkippedOutcome(target.skip)
  const { distinctId, anonId } = readIds(fields, mapping)
  const timeUs = readMappedTime(fields, conversions)
  const uuid = deriveUuid(record, fields, conversions)
  const properties = mapProperties(fields, conversions, target, notes)
  return {
    events: [{ uuid, event: target.event, sourceName: name, distinctId, timeUs, properties }],
    links: createIdentityLinks(distinctId, anonId, timeUs),
    notes,
    dropped: conversions.selector.listDroppedFields(record.value),
  }
}

/** @throws RecordReject */
function readMappedTime(fields: TypedFields, { mapping, form, window }: Conversions): number {
  const [field, value] = findFirstValue(fields, mapping.timestamp)
  return readRecordTime(value, form, window, field)
}

function readName(fields: TypedFields, { event, event_constant }: Mapping): string {
  if (event === undefined) return event_constant!
  const [field, value] = findFirstValue(fields, event)
  return event_constant !== undefined && isEmptyValue(value) ? event_constant : readEventName(value, field)
}

type Target = Exclude<RenamedEvent, string>

function findTarget(name: string, { event_names = {} }: Mapping): Target {
  const target = Object.hasOwn(event_names, name) ? event_names[name]! : name
  return typeof target === 'string' ? { event: target } : target
}

/**
 * The person's id, and the anonymous id to link with it. Without a person's id, the record belongs to the anonymous id.
 * @throws RecordReject `distinct_id_missing`, `distinct_id_illegal`, `distinct_id_too_long`.
 */
function readIds(fields: TypedFields, mapping: Mapping): { distinctId: string; anonId: string | null } {
  const anonId = findFirstLegalId(fields, mapping.anon_id ?? [])
  const distinctId = findFirstLegalId(fields, mapping.distinct_id) ?? anonId
  if (distinctId !== null) return { distinctId: checkIdLength(distinctId), anonId }
  const [field, value] = findFirstValue(fields, mapping.distinct_id)
  throw new RecordReject(isEmptyValue(value) ? 'distinct_id_missing' : 'distinct_id_illegal', field)
}

function findFirstLegalId(fields: TypedFields, paths: string | string[]): string | null {
  for (const path of [paths].flat()) {
    const id = toLegalId(fields.at(path))
    if (id !== null) return id
  }
  return null
}

/** The first path with a value that is not empty; the first path if all are empty. */
function findFirstValue(fields: TypedFields, paths: string | string[]): [field: string, value: JsonValue | undefined] {
  const all = [paths].flat()
  for (const path of all) {
    const value = fields.at(path)
    if (!isEmptyValue(value)) return [path, value]
  }
  return [all[0]!, fields.at(all[0]!)]
}

function deriveUuid({ value, ordinal }: SourceRecord, fields: TypedFields, conversions: Conversions): string {
  const { source, mapping, keepsIdentical } = conversions
  const id = mapping.uuid === undefined ? null : toEventIdText(findFirstValue(fields, mapping.uuid)[1])
  if (id !== null) return parseUuid(id) ?? deriveImportUuid(source, 'id', id)
  return keepsIdentical
    ? deriveImportUuid(source, 'content', hashCanonicalContent(value), String(ordinal))
    : deriveContentUuid(source, value)
}

function readGroups(fields: TypedFields, mapping: Mapping, notes: RecordNote[]): JsonObject {
  const groups: JsonObject = {}
  for (const [type, path] of Object.entries(mapping.groups ?? {})) {
    const value = fields.at(path)
    const key = toIdText(value)
    if (key !== null) putProperty(groups, type, key)
    else if (!isEmptyValue(value)) notes.push(`group_key_illegal:${path}`)
  }
  return groups
}

function mapProperties(
  fields: TypedFields,
  { mapping, selector }: Conversions,
  target: Exclude<Target, { skip: string }>,
  notes: RecordNote[],
): JsonObject {
  const given = selector.selectProperties(fields)
  const properties = renameFields(given, { ...mapping.rename, ...target.rename })
  putProperties(properties, target.properties ?? {})
  const groups = readGroups(fields, mapping, notes)
  if (Object.keys(groups).length > 0) properties.$groups = groups
  putPersonUpdates(properties, {
    ...(mapping.set !== undefined && { set: selectFields(fields, mapping.set) }),
    ...(mapping.set_once !== undefined && { setOnce: selectFields(fields, mapping.set_once) }),
  })
  return properties
}
