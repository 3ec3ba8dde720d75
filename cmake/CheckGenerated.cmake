# A generated page is current. In: COMMAND (a list; its output is the page), FILE (the page in the tree), TARGET (what makes it). Fails with what to do.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE made RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the generator failed: ${COMMAND}")
endif()
file(READ ${FILE} have)
if(NOT made STREQUAL have)
  message(FATAL_ERROR "${FILE} is not what the generator makes; run: ninja -C build ${TARGET}")
endif()
