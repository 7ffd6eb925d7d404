// SQL expressions that read the called flag and its answer from the properties of a stored event.

/**
 * The flag and the answer that an event's properties name, as `flagCallOf` (core/processing/deduplicate-flag-calls.ts) has them. The
 * regular expressions are for properties that this engine's parser refuses, for a number of 30 digits anywhere in them.
 */
export const flagNamed = `if(isValidJSON(properties), ${jsonTextSql('$feature_flag')},
    extract(properties, '"[$]feature_flag"\\\\s*:\\\\s*"([^"\\\\\\\\]*)"'))`
export const responseNamed = `if(isValidJSON(properties),
    if(JSONType(properties, '$feature_flag_response') = 'Bool',
      JSONExtractRaw(properties, '$feature_flag_response'),
      ${jsonTextSql('$feature_flag_response')}),
    trim(BOTH '"' FROM extract(properties,
      '"[$]feature_flag_response"\\\\s*:\\\\s*(true|false|"[^"\\\\\\\\]*")')))`

/** SQL of a property's text; '' for a value of another type. */
export function jsonTextSql(key: string): string {
  return `if(JSONType(properties, '${key}') = 'String', JSONExtractString(properties, '${key}'), '')`
}
