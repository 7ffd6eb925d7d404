// Used in place of a failure: nothing is wrong, but the time slice has ended and the same flag must be evaluated again.

export const outOfTime = 'out_of_time'
