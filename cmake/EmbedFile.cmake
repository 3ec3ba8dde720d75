# Writes a file's bytes as C numbers. In: INPUT, OUTPUT. Out: OUTPUT, e.g. `0x54,0x41,`, to be included between braces. Run with cmake -P.
file(READ ${INPUT} hex HEX)
string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
file(WRITE ${OUTPUT} "${hex}\n")
