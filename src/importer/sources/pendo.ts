// Events of Pendo: the Avro files `allevents` of its Data Sync. Source: docs/wire/import.md §1.10.

import { mappedSource } from './generic.ts'
import mapping from './mappings/pendo.json' with { type: 'json' }

export const pendo = mappedSource('pendo', 'Pendo Data Sync (Avro, allevents)', mapping)
