// How large a row is, measured without reading its texts.

/** SQL: bytes of an event's texts, of which the engine reads the sizes alone. */
export const sizeOf = 'length(properties) + length(person_properties) + length(elements_chain)'

/** Bytes of an event's narrow columns, about. */
export const narrowBytes = 150
