// Pendo: events in the `allevents` Avro files of its Data Sync. Source: docs/wire/import.md §1.10.

import mapping from '#importer/sources/generic/mappings/pendo.json' with { type: 'json' }
import { createMappedSource } from './generic.ts'

export const pendo = createMappedSource('pendo', 'Pendo Data Sync (Avro, allevents)', mapping)
