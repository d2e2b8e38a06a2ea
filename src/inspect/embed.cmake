# Writes a C++ file that holds page.html as text: cmake -DPAGE=... -DOUTPUT=... -P embed.cmake
file(READ ${PAGE} page)
file(WRITE ${OUTPUT} "#include \"inspect/page.h\"

namespace maxport::inspect {

std::string_view page_text() {
  return R\"html(${page})html\";
}

}  // namespace maxport::inspect
")
